"""What the tests of the orphans' collector share: leftovers, and the task as a worker runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pumped_world

from eni_tasks.model.network import NodeName, ownership
from eni_tasks.tasks.app import make_app

if TYPE_CHECKING:
    from pumped import System

    from eni_tasks.bootstrap import Services

NODE = NodeName("node")
GRACE = 300.0
REMOVED_WAIT = pumped_world.TIMEOUT_SECONDS + 5
PODS = {"first-interface-index": 1}


def collect(system: System, services: Services | None = None, **arguments: Any) -> dict[str, Any]:
    """Run `eni.collect_orphans` as a worker does."""
    services = services or system.services
    app = make_app(services.settings)
    app._services = services
    report: dict[str, Any] = app.tasks["eni.collect_orphans"](**arguments)
    return report


def left(system: System, count: int = 1, *, instance: str = "i-0123", **options: Any) -> list[str]:
    """Put unattached interfaces of ours there."""
    options = {"tags": ownership(system.cluster), "description": f"Cilium-CNI ({instance})"} | options
    subnet = options.pop("subnet", system.built.pod_subnets["a"])
    return [system.ec2.add_interface(subnet, **options).id for _ in range(count)]


def there(system: System) -> set[str]:
    return {each.id for each in system.ec2.view().interfaces}


def deletes(system: System) -> list[str]:
    """The interfaces that a delete of ours took away, one entry per effect."""
    calls = system.ec2.calls("DeleteNetworkInterface")
    return [call.parameters["NetworkInterfaceId"] for call in calls if call.code == "OK"]
