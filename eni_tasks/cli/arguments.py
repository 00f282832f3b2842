"""A node's name as an argument, and the names that the shell offers to complete it."""

from __future__ import annotations

from typing import Annotated

import typer

from eni_tasks.cli.processes import services
from eni_tasks.errors import EniTasksError


def known_nodes(incomplete: str) -> list[str]:
    """The names of known nodes that begin with what was typed; none if Redis does not answer."""
    try:
        return sorted(name for name in services().state.nodes.names() if name.startswith(incomplete))
    except EniTasksError:
        return []  # the command itself says what is wrong


_NODE = typer.Argument(metavar="NODE", help="Name of a CiliumNode.", autocompletion=known_nodes)
NodeArgument = Annotated[str, _NODE]
OptionalNode = Annotated[str | None, _NODE]
