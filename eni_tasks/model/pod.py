"""A pod as the API server holds it: the fields that say whether it waits on a node, and no others."""

from __future__ import annotations

import msgspec

from eni_tasks.model.cilium_node import Metadata
from eni_tasks.model.network import Value


class PodSpec(Value, frozen=True, rename="camel"):
    """`spec`; `node_name` is absent until the pod is bound to a node."""

    node_name: str | None = None
    host_network: bool | None = None


class PodStatus(Value, frozen=True):
    """`status`."""

    phase: str | None = None


class Pod(Value, frozen=True):
    """One pod."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def waits_on(self) -> str:
        """The node on which it waits; "" if it does not, or on the host's network, where it takes no address."""
        waits = self.status.phase == "Pending" and not self.metadata.deletion_timestamp
        return (self.spec.node_name or "") if waits and not self.spec.host_network else ""


decode_pod = msgspec.json.Decoder(Pod).decode
