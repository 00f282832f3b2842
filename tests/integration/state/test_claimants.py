"""Which of several objects that name one instance has it, whatever order they are stored in."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from state_under_test import INSTANCE, State

from eni_tasks.domain.cilium_node import decode_node

if TYPE_CHECKING:
    from eni_tasks.model.cilium_node import CiliumNode

_versions = itertools.count(1)
OLD, YOUNG = "2020-01-01T00:00:00Z", "2024-01-01T00:00:00Z"


def obj(name: str, created: str = OLD, *, instance: str = INSTANCE, pool: bool = False) -> CiliumNode:
    metadata = {"name": name, "uid": name, "resourceVersion": str(next(_versions)), "creationTimestamp": created}
    spec: dict[str, Any] = {
        "instance-id": instance,
        "ipam": {"pool": {"10.0.0.1": {"resource": "eni-1"}} if pool else {}},
    }
    return decode_node(msgspec.json.encode({"metadata": metadata, "spec": spec}))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("owner", "other"),
    [
        pytest.param(("a", OLD, False), ("b", YOUNG, False), id="the older one"),
        pytest.param(("b", OLD, True), ("a", YOUNG, True), id="the older one of two that show addresses"),
        pytest.param(("b", YOUNG, True), ("a", OLD, False), id="the younger one that shows addresses"),
    ],
)
def test_objects_that_are_all_new_to_this_redis(
    state: State, owner: tuple[str, str, bool], other: tuple[str, str, bool], *, swapped: bool
) -> None:
    both = [obj(name, created, pool=pool) for name, created, pool in (owner, other)]
    state.store(*(reversed(both) if swapped else both))
    assert state.nodes.contested() == {INSTANCE: [owner[0], other[0]]}


def test_objects_of_one_second_come_in_the_order_in_which_they_were_stored(state: State) -> None:
    state.store(obj("b"), obj("a"), obj("c"))
    assert state.nodes.contested() == {INSTANCE: ["b", "a", "c"]}


@pytest.mark.parametrize("pool", [False, True])
def test_a_changed_object_comes_after_all_that_named_the_instance_before(state: State, *, pool: bool) -> None:
    state.store(obj("old", instance="i-2", pool=pool), obj("young", YOUNG))
    state.store(obj("old", pool=pool))
    assert state.nodes.owner(INSTANCE) == "young"
    state.store(obj("young", YOUNG, pool=True), obj("old", pool=pool))
    assert state.nodes.contested() == {INSTANCE: ["young", "old"]}


def test_a_new_object_with_a_forged_pool_takes_no_instance_from_a_node_that_is_served(state: State) -> None:
    state.store(obj("served", OLD))
    state.store(obj("served", OLD, pool=True))
    state.store(obj("forged", YOUNG, pool=True))
    assert state.nodes.owner(INSTANCE) == "served"


def test_a_claim_ends_with_a_change_and_begins_again_as_a_later_one(state: State) -> None:
    state.store(obj("first"), obj("second", YOUNG))
    state.store(obj("first", instance="i-2"))
    assert (state.nodes.owner(INSTANCE), state.nodes.contested()) == ("second", {})
    state.store(obj("first"))
    assert state.nodes.contested() == {INSTANCE: ["second", "first"]}
