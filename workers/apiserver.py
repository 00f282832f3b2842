"""A worker of the queue `apiserver`."""

from eni_tasks.cli.processes import run_worker

if __name__ == "__main__":
    run_worker(["apiserver"])
