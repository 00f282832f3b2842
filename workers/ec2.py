"""A worker of the queue `ec2`."""

from eni_tasks.cli.processes import run_worker

if __name__ == "__main__":
    run_worker(["ec2"])
