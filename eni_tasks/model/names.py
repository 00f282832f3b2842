"""What may be the name of a node, for every way by which a name comes in."""

from __future__ import annotations

import re

from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import NodeName

# An RFC 1123 subdomain, as Kubernetes demands of an object's name.
NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def node_name(node: object) -> NodeName:
    """Check a name that a person or a message gives.

    Raises:
        InvalidInput: no node can have that name.
    """
    if not isinstance(node, str) or not NODE_NAME.fullmatch(node):
        raise InvalidInput(f"{node!r} is not the name of a node (such as ip-10-0-1-2.ec2.internal)")
    return NodeName(node)
