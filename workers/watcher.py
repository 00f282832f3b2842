"""The watcher: sees changes, and ticks."""

from eni_tasks.cli.processes import run_watcher

if __name__ == "__main__":
    run_watcher()
