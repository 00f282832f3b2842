"""Flower: the window on workers and tasks, with the options of `eni-tasks flower`."""

import typer

from eni_tasks.cli.flower import flower

if __name__ == "__main__":
    typer.run(flower)
