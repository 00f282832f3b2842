"""A worker dies at every point of its way; the next one brings the node to the same end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest

from eni_tasks.model.network import NodeName
from eni_tasks.model.state import Outcome
from eni_tasks.model.work import WorkKind
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from pumped import System

NODE = NodeName("node")
NOT_ATTACHABLE = Fault(action="AttachNetworkInterface", code="InvalidParameterCombination", times=1)

# Each call on the way of a new interface, in its order, with its number among those of its name.
CREATING = [
    ("limiter", "acquire", 1),  # with the intent in the journal
    ("ec2", "create_interface", 1),
    ("runs", "record", 1),  # created
    ("limiter", "acquire", 2),
    ("ec2", "attach_interface", 1),
    ("runs", "record", 2),  # attached
    ("limiter", "acquire", 3),
    ("ec2", "set_delete_on_termination", 1),
    ("runs", "record", 3),  # completed
    ("runs", "end", 1),
]
UNDOING = [
    ("runs", "record", 2),  # undo
    ("limiter", "acquire", 3),
    ("ec2", "delete_interface", 1),
    ("runs", "record", 3),  # completed
    ("runs", "end", 1),
]
ASSIGNING = [
    ("limiter", "acquire", 1),
    ("ec2", "assign_addresses", 1),
    ("runs", "record", 1),
    ("runs", "end", 1),
]
PUBLISHING = [("kube", "patch_status", 1), ("kube", "patch_spec", 1), ("runs", "store", 1)]


def points(calls: list[tuple[str, str, int]]) -> pytest.MarkDecorator:
    cases = [(*call, after) for call in calls for after in (False, True)]
    ids = [f"{'after' if after else 'before'}-{method}-{number}" for _, method, number, after in cases]
    return pytest.mark.parametrize(("part", "method", "number", "after"), cases, ids=ids)


def dies(system: System, part: str, method: str, number: int, *, after: bool) -> None:
    """Let the first process work until it dies, and bury it."""
    services = system.services
    parts = {"ec2": services.ec2, "kube": services.publish._nodes}
    holder = parts.get(part) or getattr(services.state, part)
    system.settle_reads()
    system.dies(holder, method, after=after, number=number)
    with pytest.raises(pumped.Killed):
        system.settle(within_seconds=5)
    system.later(pumped.LEASE_SECONDS + 1)


@points(CREATING)
def test_a_new_interface_is_finished_by_the_next(
    system: System, part: str, method: str, number: int, *, after: bool
) -> None:
    instance = system.add_node(eni={"first-interface-index": 1})
    dies(system, part, method, number, after=after)
    system.settle(system.process(), within_seconds=300)
    assert [len(each.addresses) for each in system.interfaces(instance)] == [0, 8]
    assert len(system.pool()) == 8
    assert system.status().ready
    assert system.interfaces(instance)[1].attachment.delete_on_termination
    # Where one may have been sent, it is looked first.
    assert len(system.ec2.calls("AttachNetworkInterface")) == 1
    assert system.clean()
    system.later(60)
    system.resync()  # described again: what the ledger held is in the free counts
    assert system.reserved() == {}


@points(UNDOING)
def test_the_way_back_is_finished_by_the_next(
    system: System, part: str, method: str, number: int, *, after: bool
) -> None:
    instance = system.add_node(eni={"first-interface-index": 1})
    system.ec2.add_faults([NOT_ATTACHABLE])
    dies(system, part, method, number, after=after)
    system.settle(system.process(), within_seconds=300)
    # Before the way back is in the journal, the next one attaches what is there.
    kept_at_once = (method, number, after) == ("record", 2, False)
    deleted = [call for call in system.ec2.calls("DeleteNetworkInterface") if call.code == "OK"]
    assert len({call.parameters["NetworkInterfaceId"] for call in deleted}) == (0 if kept_at_once else 1)
    assert [len(each.addresses) for each in system.interfaces(instance)] == [0, 8]
    assert system.status().ready
    assert system.clean()


@points(ASSIGNING)
def test_addresses_are_not_assigned_twice(system: System, part: str, method: str, number: int, *, after: bool) -> None:
    instance = system.add_node()
    dies(system, part, method, number, after=after)
    system.settle(system.process(), within_seconds=300)
    assert len([call for call in system.ec2.calls("AssignPrivateIpAddresses") if call.effect]) == 1
    assert [len(each.addresses) for each in system.interfaces(instance)] == [8]
    assert len(system.pool()) == 8
    assert system.status().ready
    assert system.clean()


@points(PUBLISHING)
def test_a_half_written_object_is_finished_by_the_next(
    system: System, part: str, method: str, number: int, *, after: bool
) -> None:
    system.add_node()
    dies(system, part, method, number, after=after)
    system.settle(system.process(), within_seconds=300)
    assert len(system.pool()) == 8
    assert set(system.pool().values()) == set(system.object()["status"]["eni"]["enis"])
    assert sum(system.writes().values()) <= 3


def test_a_worker_that_lost_its_claim_makes_no_further_mutation(system: System) -> None:
    """B19: A pauses for twice its lease after Create; B adopts the interface; one is attached in total."""
    instance = system.add_node(eni={"first-interface-index": 1})
    system.settle_reads()
    other, real = system.process(), system.services.ec2.create_interface
    reports = []

    def slow(**parameters: object) -> object:
        made = real(**parameters)
        system.later(2 * pumped.LEASE_SECONDS)
        reports.append(other.maintain.run(NODE))
        return made

    system.services.ec2.create_interface = slow
    system.services.work.requeue_overdue(10)
    first = system.services.maintain.run(NODE)
    assert "another worker" in first["skipped"]
    assert reports[0]["did"]
    assert system.mutations() == {"Create": 2, "Attach": 1, "Modify": 1}
    assert len(system.interfaces(instance)) == 2
    system.settle(other, within_seconds=60)
    assert system.status().ready
    assert system.clean()


def test_a_second_worker_with_the_same_message_does_nothing(system: System) -> None:
    system.add_node()
    system.settle_reads()
    claim = system.services.state.queue.claim(WorkKind.MAINTAIN, NODE)
    assert claim is not None
    assert "another worker holds this node" in system.process().maintain.run(NODE)["skipped"]
    assert system.mutations() == {}


@pytest.mark.parametrize("entry", [b"{}", b"no json", b'{"step":"created","token":"t"}'])
def test_a_journal_that_cannot_be_read_stops_only_its_node(system: System, entry: bytes) -> None:
    system.add_node()
    system.add_node("healthy")
    system.settle_reads()
    claim = system.services.state.queue.claim(WorkKind.MAINTAIN, NODE)
    assert claim is not None
    assert system.services.state.runs.record(claim, Outcome(journal=entry))
    system.services.state.queue.finish(claim)
    system.settle()
    assert system.status("healthy").ready
    assert system.pool() == {}
    assert "journal entry" in system.services.maintain.run(NODE)["failed"]


def test_a_process_that_has_to_end_hands_back_between_two_calls(system: System) -> None:
    instance = system.add_node(eni={"first-interface-index": 1})
    system.settle_reads()
    services, other = system.services, system.process()
    real = services.ec2.create_interface

    def stopping(**parameters: object) -> object:
        services.stopping.set()
        return real(**parameters)

    services.ec2.create_interface = stopping
    services.work.requeue_overdue(10)
    report = services.maintain.run(NODE)
    assert "another worker continues" in report["did"][-1]
    assert system.mutations() == {"Create": 1}
    system.settle(other, within_seconds=5)
    assert system.mutations() == {"Create": 1, "Attach": 1, "Modify": 1}
    assert len(system.interfaces(instance)) == 2
    assert system.status().ready
