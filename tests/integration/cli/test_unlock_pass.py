"""A pass over the fleet that hangs is taken from its worker by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest

from eni_tasks.errors import InvalidInput
from eni_tasks.model.work import Pass, WorkKind
from eni_tasks.tasks.registry import TASKS

if TYPE_CHECKING:
    from commands import Commands
    from pumped import System


@pytest.mark.parametrize(
    ("which", "queue", "task"),
    [
        (Pass.INVENTORY, "resync", "eni.refresh_inventory"),
        (Pass.INSTANCES, "resync", "eni.refresh_instances"),
        (Pass.ORPHANS, "ec2", "eni.collect_orphans"),
    ],
)
def test_its_claim_ends_and_the_pass_is_sent(system: System, cli: Commands, which: Pass, queue: str, task: str) -> None:
    work = system.services.state.queue
    claim = work.claim(WorkKind.FLEET, which)
    assert claim is not None
    assert work.renew([claim]) == []
    assert work.claim(WorkKind.FLEET, which) is None
    report = cli.json("unlock", "--pass", which)
    assert report["pass"] == which
    assert 0 < report["ended"] <= pumped.LEASE_SECONDS
    assert cli.sent(queue) == [(task, [])]
    assert work.renew([claim]) == [claim]  # its holder has lost it
    assert work.claim(WorkKind.FLEET, which) is not None
    assert [event["pass"] for event in cli.json("events")] == [which]


def test_a_pass_that_hung_ends_without_effect_on_the_next(system: System, cli: Commands) -> None:
    """The read that hangs is unlocked, another worker reads everything, then the first one comes back."""
    system.add_node()
    system.ingest()
    real, read = system.services.ec2.interfaces_of, []

    def hangs(instances: list[str]) -> object:
        if not read:
            read.append(1)
            cli("unlock", "--pass", "inventory")
            report = system.process().refresh.read_inventory()
            assert report["instances"] == 1
        return real(instances)

    system.services.ec2.interfaces_of = hangs  # type: ignore[method-assign]
    system.services.refresh.read_inventory()
    assert system.services.state.queue.claim(WorkKind.FLEET, Pass.INVENTORY) is not None
    system.settle()
    assert len(system.pool()) == 8
    assert system.clean()


def test_nothing_to_unlock_is_no_trouble(cli: Commands) -> None:
    assert cli("unlock", "--pass", "instances") == "No worker has claimed the pass instances.\n"
    assert [cli.sent(queue) for queue in ("resync", "ec2")] == [[], []]


@pytest.mark.parametrize(
    "arguments",
    [[], ["node", "--pass", "inventory"], ["--pass", "orphans", "--delete-journal"]],
    ids=["nothing", "both", "no-journal"],
)
def test_wrong_use(cli: Commands, arguments: list[str]) -> None:
    assert "--pass" in cli.run("unlock", *arguments, code=2).stderr


def test_the_task_names_the_passes() -> None:
    body, queue = TASKS["eni.unlock_pass"]
    assert queue == "ec2", "a pass that hangs may hold up the workers of resync"
    with pytest.raises(InvalidInput, match="'everything' is none of the passes: inventory, instances, orphans"):
        body(None, "everything")
