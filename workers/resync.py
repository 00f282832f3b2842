"""A worker of the queue `resync`."""

from eni_tasks.cli.processes import run_worker

if __name__ == "__main__":
    run_worker(["resync"])
