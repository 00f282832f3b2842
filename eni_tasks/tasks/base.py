"""What all tasks share: the services of the process, and how arguments are checked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import celery

from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import NodeName

if TYPE_CHECKING:
    from eni_tasks.bootstrap import Services
    from eni_tasks.tasks.app import EniApp

# RFC 1123 subdomain: what Kubernetes accepts as the name of a node.
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class EniTask(celery.Task):  # type: ignore[misc]  # celery ships no types
    """A task with the services of its process."""

    # Somebody's wrong argument: told in one line of the log, without a trace.
    throws = (InvalidInput,)

    @property
    def services(self) -> Services:
        """The use cases of this process."""
        app: EniApp = self.app
        return app.services


def node_name(node: object) -> NodeName:
    """Check what somebody gave as a node's name.

    Raises:
        InvalidInput: it can't be one; nothing is done.
    """
    if not isinstance(node, str) or not _NODE_NAME.fullmatch(node):
        raise InvalidInput(f"node={node!r} is not the name of a node (such as ip-10-0-1-2.ec2.internal)")
    return NodeName(node)
