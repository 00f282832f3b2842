"""What a worker process does before it dies: one flow of the system each, as its processes do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.model.network import NodeName

if TYPE_CHECKING:
    from collections.abc import Callable

    from eni_tasks.bootstrap import Services
    from eni_tasks.model.work import WorkKind

NODE = NodeName("node")


class Lost:
    """Messages that this process sends die with it."""

    def send(self, kind: WorkKind, name: NodeName) -> None:
        """See `ports.messages.Messages.send`."""


def maintain(services: Services) -> None:
    """One run for the node."""
    services.maintain.run(NODE)


def publish(services: Services) -> None:
    """One write of the node's object."""
    services.publish.run(NODE)


def instances(services: Services) -> None:
    """A read of the instances whose read was requested."""
    services.refresh.read_requested()


def inventory(services: Services) -> None:
    """A read of everything."""
    services.refresh.read_inventory()


def orphans(services: Services) -> None:
    """A pass of the collector."""
    services.orphans.run()


def ingest(services: Services) -> None:
    """The watcher's list, handed over."""
    services.ingest.take_list(services.node_feed.pages())


def tick(services: Services) -> None:
    """The watcher's second."""
    services.ticker(lambda: None).tick()


FLOWS: dict[str, Callable[[Services], None]] = {
    flow.__name__: flow for flow in (maintain, publish, instances, inventory, orphans, ingest, tick)
}
