"""Blocks that agents of Cilium 1.20 give up, against Cilium's vectors and our corrections of them."""

from __future__ import annotations

import pytest
from vector_world import cases, interfaces, load, required

from eni_tasks.domain import watermark
from eni_tasks.domain.blocks import releasable
from eni_tasks.domain.given_up import LEAST_DELAY_SECONDS, confirmed, due, marks, within_excess
from eni_tasks.model.node import Node

VECTORS = [*load("multipool"), *load("multipool-1.20")]


def of(category):
    return cases([each for each in VECTORS if each["category"] == category])


def eni(identifier, given):
    defaults = {"id": identifier, "number": 0, "subnet": "subnet-1", "ip": "10.0.0.4", "security_groups": []}
    return defaults | given


@pytest.mark.parametrize("vector", of("attached"))
def test_what_could_be_released(vector):
    given = [{"tags": {"skip": "yes"} if each.get("excluded") else {}} | each for each in vector["input"]["enis"]]
    node = Node(name="n", uid="u", exclude_interface_tags={"skip": "yes"})
    assert sorted(releasable(interfaces(given), node)) == sorted(required(vector)["attached_sorted"])


@pytest.mark.parametrize("vector", of("prepare"))
def test_from_which_interface_a_block_is_released(vector):
    given = [eni(identifier, each) for identifier, each in vector["input"]["enis"].items()]
    found = releasable(interfaces(given), Node(name="n", uid="u"))
    expected = {
        block: action["eni"]
        for action in required(vector)["actions"]
        for block in (*action["unassign_prefixes"], *(f"{address}/32" for address in action["unassign_ips"]))
    }
    assert {block: found[block].id for block in vector["input"]["release"] if block in found} == expected


@pytest.mark.parametrize("vector", of("track"))
def test_since_when_blocks_are_given_up(vector):
    since, before = {}, None
    delay = vector["input"].get("delay", 180)
    for step, expected in zip(vector["input"]["steps"], required(vector)["steps"], strict=True):
        attached = [block for block in step["attached"] if ":" not in block]
        if not step.get("multi_pool", True):
            since, before = {}, None  # another contract: its memory is empty
        elif attached:  # else nothing is known of EC2's side, and this is no look
            since = marks(since, before=before, listed=step["allocated"], attached=attached, now=step["t"])
            before = step["allocated"]
        assert since == expected["marked"]
        assert due(since, now=step["t"], delay_seconds=delay) == expected.get("due", [])


def test_the_delay_is_longer_than_an_agents_list_may_be_old():
    since = {"10.0.0.5/32": 0.0}
    assert due(since, now=LEAST_DELAY_SECONDS - 1, delay_seconds=1) == []
    assert due(since, now=LEAST_DELAY_SECONDS, delay_seconds=1) == ["10.0.0.5/32"]


@pytest.mark.parametrize("vector", of("release_bound"))
def test_no_more_than_the_excess_is_released(vector):
    given, expected = vector["input"], required(vector)
    figures = {key: given[key] for key in ("available", "used", "pre_allocate", "min_allocate")}
    excess = watermark.excess(**figures, max_above_watermark=given["max_above_watermark"])
    since = dict.fromkeys(given["due"], 0.0)
    released = within_excess(due(since, now=1000, delay_seconds=180), excess)
    assert released == expected["released"]
    gone = sum(16 if block.endswith("/28") else 1 for block in released)
    after = figures | {"available": given["available"] - gone}
    assert watermark.needed(**after, cap=None) == expected["needed_after"]


@pytest.mark.parametrize("vector", of("release_guard"))
def test_the_last_look_before_the_call(vector):
    given, expected = vector["input"], required(vector)
    release, restarted = confirmed(
        given["due"], listed=given["allocated_now"], in_use=[*given["addresses_in_use_on_node"], "fd00::1"]
    )
    assert (release, restarted) == (expected["unassign"], expected.get("mark_restarted", []))


def test_the_oldest_mark_goes_first():
    since = {"10.0.1.0/28": 9.0, "10.0.2.0/28": 5.0, "10.0.0.9/32": 9.0}
    assert due(since, now=500, delay_seconds=180) == ["10.0.2.0/28", "10.0.0.9/32", "10.0.1.0/28"]
    assert within_excess(["10.0.2.0/28", "10.0.0.9/32"], 3) == ["10.0.0.9/32"]
