"""The exporter: shared state for Prometheus, with the options of `eni-tasks exporter`."""

import typer

from eni_tasks.cli.processes import exporter

if __name__ == "__main__":
    typer.run(exporter)
