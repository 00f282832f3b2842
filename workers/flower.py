"""Flower: the window on workers and tasks."""

from eni_tasks.cli.processes import run_flower

if __name__ == "__main__":
    run_flower()
