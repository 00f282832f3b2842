"""A machine is replaced under the same object while its object is being written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from eni_tasks.model.network import NodeName

if TYPE_CHECKING:
    from pumped import System

NODE = NodeName("node")


@pytest.mark.parametrize("write", ["patch_status", "patch_spec"])
def test_the_next_machine_is_not_shown_the_last_ones_addresses(system: System, write: str) -> None:
    system.add_node()
    system.settle()
    system.use(1)
    system.ingest()
    system.services.maintain.run(NODE)
    replaced = system.launch()
    nodes = system.services.publish._nodes
    real = getattr(nodes, write)

    def overtaken(*args: Any) -> Any:
        setattr(nodes, write, real)

        def replace(body: dict[str, Any]) -> None:
            body["spec"] |= {"instance-id": replaced.id, "ipam": {}}

        system.change("node", replace)
        return real(*args)

    setattr(nodes, write, overtaken)
    system.services.publish.run(NODE)
    assert system.pool() == {}
    system.settle(within_seconds=300)
    (interface,) = system.interfaces(replaced)
    assert set(system.pool().values()) == {interface.id}
    assert set(system.object()["status"]["eni"]["enis"]) == {interface.id}
    assert system.status().ready
