"""What all tasks share: the services of the process, and how arguments are checked."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import celery

from eni_tasks.errors import InvalidInput, NodeGone
from eni_tasks.model.network import NodeName

if TYPE_CHECKING:
    from eni_tasks.bootstrap import Services
    from eni_tasks.tasks.app import EniApp

# RFC 1123 subdomain: what Kubernetes accepts as the name of a node.
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class EniTask(celery.Task):  # type: ignore[misc]  # celery ships no types
    """A task with the services of its process."""

    # Somebody's wrong argument: told in one line of the log, without a trace.
    throws = (InvalidInput, NodeGone)
    # Checked here, by the worker: a sender's own check is a 500 without words in Flower's API.
    typing = False
    # A whole report fits into the event that Flower shows as the result.
    resultrepr_maxsize = 4096

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task.

        Raises:
            InvalidInput: an argument is missing, or one too many; nothing is done.
        """
        signature = inspect.signature(self.run)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            takes = ", ".join(signature.parameters) or "none"
            raise InvalidInput(f"{self.name}: {error} (its arguments: {takes})") from None
        return super().__call__(*args, **kwargs)

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
