"""One entry per process: settings → bootstrap → run."""
