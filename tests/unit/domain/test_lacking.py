"""What a read lacks is lost only when two reads a minute apart lack it."""

import msgspec
import pytest
from worlds import eni

from eni_tasks.domain.lacking import believed, explain, lacked, without_released
from eni_tasks.model.node import Node
from eni_tasks.model.state import Facts


def facts(*interfaces, **more):
    return Facts(instance_id="i-1", interfaces=interfaces, described_at=100.0, **more)


def without(interface, *addresses):
    left = tuple(address for address in interface.addresses if address not in addresses)
    return msgspec.structs.replace(interface, addresses=left)


def test_everything_that_is_missing_is_named():
    first, second = eni(0, 2), eni(1, 1)
    assert lacked((first, second), (without(first, "10.0.1.1"),)) == {"10.0.1.1", "eni-1", "10.1.1.0"}
    detaching = msgspec.structs.replace(second, attachment_status="detaching")
    assert lacked((second,), (detaching,)) == {"eni-1", "10.1.1.0"}
    assert lacked((first,), (first, second)) == frozenset()


def test_an_address_that_moved_is_not_lacked():
    first, second = eni(0, 2), eni(1, 0)
    moved = msgspec.structs.replace(second, addresses=("10.0.1.1",))
    assert lacked((first, second), (without(first, "10.0.1.1"), moved)) == frozenset()


def test_a_read_that_lacks_and_shows_something_adds_only():
    first, new = eni(0, 2), eni(2, 1)
    joined, lacking = believed(facts(first), (without(first, "10.0.1.0"), new), 200.0)
    assert {interface.id: set(interface.addresses) for interface in joined} == {
        "eni-0": {"10.0.1.0", "10.0.1.1"},
        "eni-2": {"10.2.1.0"},
    }
    assert lacking == {"10.0.1.0": 200.0}


@pytest.mark.parametrize(("later", "lost"), [(59.9, False), (60.0, True)])
def test_two_reads_a_minute_apart_prove_it(later, lost):
    first, second = eni(0, 1), eni(1, 1)
    joined, lacking = believed(facts(first, second), (first,), 200.0)
    assert joined == (first, second)
    joined, _ = believed(facts(*joined, lacking=lacking), (first,), 200.0 + later)
    assert joined == ((first,) if lost else (first, second))


def test_a_read_that_shows_it_in_between_starts_the_clock_again():
    first = eni(0, 1)
    _, lacking = believed(facts(first), (without(first, "10.0.1.0"),), 200.0)
    _, lacking = believed(facts(first, lacking=lacking), (first,), 230.0)
    assert lacking == {}
    joined, lacking = believed(facts(first, lacking=lacking), (without(first, "10.0.1.0"),), 265.0)
    assert (joined, lacking) == ((first,), {"10.0.1.0": 265.0})


def test_each_address_has_its_own_clock():
    first = eni(0, 2)
    known = facts(first, lacking={"10.0.1.0": 200.0})
    joined, lacking = believed(known, (without(first, "10.0.1.0", "10.0.1.1"),), 261.0)
    assert (joined[0].addresses, lacking) == (("10.0.1.1",), {"10.0.1.1": 261.0})


def test_people_read_how_many_used_addresses_are_lacked_and_since_when():
    node = Node(name="node", uid="u", used=frozenset({"10.0.1.0", "10.9.0.3", "10.0.9.9"}))
    said = explain(facts(eni(0, 1), lacking={"10.0.1.0": 60.0, "10.9.0.0/28": 30.0, "10.0.1.5": 0.0}), node)
    assert "lacked 2 used addresses of i-1 since 1970-01-01T00:00:30Z" in said
    assert explain(facts(eni(0, 1), lacking={"10.0.1.5": 0.0}), node) == ""


@pytest.mark.parametrize(("started_at", "shown"), [(159.0, ("10.1.1.1",)), (160.0, ("10.1.1.0", "10.1.1.1"))])
def test_what_was_given_back_is_not_believed_to_be_there_for_a_minute(started_at, shown):
    known = Facts(instance_id="i-1", interfaces=(eni(1, 0, addresses=("10.1.1.1",)),), described_at=50.0)
    known = msgspec.structs.replace(known, released={"10.1.1.0": 100.0, "10.9.0.0/28": 100.0})
    (read,) = without_released(known, (eni(1, 2, prefixes=("10.9.0.0/28",)),), started_at)
    assert read.addresses == shown
    assert read.prefixes == (() if len(shown) == 1 else ("10.9.0.0/28",))


def test_what_was_given_back_and_assigned_again_is_there():
    known = Facts(instance_id="i-1", interfaces=(eni(1, 2),), described_at=50.0, released={"10.1.1.0": 100.0})
    shown = (eni(1, 2), eni(2, 1))
    assert without_released(known, shown, 101.0) == shown
