"""`python -m eni_tasks.cli`: the command line where it is not on PATH."""

from eni_tasks.cli.commands import run

if __name__ == "__main__":
    run()
