"""Prefix delegation in the running system: what is asked of EC2, what the object shows, and fragmented subnets."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

import pumped
import pytest
from agent_accepts import agent_accepts

from eni_tasks.sandbox.ec2.interfaces import Addresses, assign_addresses, unassign_addresses
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from eni_tasks.sandbox.ec2.records import Instance, Interface

PODS = {"first-interface-index": 1}


@pytest.fixture
def system(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pumped.System]:
    with pumped.running(redis_url, tmp_path, monkeypatch, prefix_delegation=True) as system:
        yield system


def addresses_of(interface: Interface) -> set[str]:
    inside = {str(address) for prefix in interface.prefixes for address in IPv4Network(prefix)}
    return inside | set(interface.addresses)


def shown_as_it_is(system: pumped.System, instance: Instance, name: str = "node") -> None:
    """The object shows exactly what EC2 has, and an agent takes it."""
    held = {each.id: each for each in system.interfaces(instance)}
    enis = system.object(name)["status"]["eni"]["enis"]
    first = system.object(name)["spec"]["eni"].get("first-interface-index", 0)
    assert {key: tuple(eni.get("prefixes", ())) for key, eni in enis.items()} == {
        key: each.prefixes for key, each in held.items()
    }
    for key, each in held.items():
        assert set(enis[key].get("addresses", ())) == addresses_of(each)
    for_pods = [each for each in held.values() if each.attachment and each.attachment.device_index >= first]
    assert system.pool(name) == {address: each.id for each in for_pods for address in addresses_of(each)}
    assert agent_accepts(enis, system.object(name)["spec"]["ipam"]["pool"]) is None
    assert system.clean()


def shape(system: pumped.System, instance: Instance) -> list[tuple[int, int]]:
    """Single addresses and prefixes of each interface, by device."""
    return [(len(each.addresses), len(each.prefixes)) for each in system.interfaces(instance)]


def small_subnet(system: pumped.System, number: int, *, size: int = 26, **tags: str) -> str:
    return system.built.world.add_subnet(system.built.vpc_id, "a", f"10.0.{200 + number}.0/{size}", tags).id


def fragment(system: pumped.System, number: int) -> list[str]:
    """Take one address of each block of a small subnet."""
    taken = [f"10.0.{200 + number}.{last}" for last in (20, 40)]
    subnet = next(
        s.id for s in system.built.world.subnets.truth.by_id.values() if s.cidr == f"10.0.{200 + number}.0/26"
    )
    system.ec2.occupy_addresses(subnet, taken)
    return taken


def add_prefixes(system: pumped.System, interface_id: str, count: int) -> None:
    """Give an interface prefixes, as a person or another operator does."""
    with system.built.world.lock:
        assign_addresses(system.built.world, interface_id=interface_id, wanted=Addresses(prefixes=count))


def waiting(system: pumped.System, name: str = "node", **parts: Any) -> Instance:
    instance = system.add_node(name, **parts)
    system.settle_reads()
    return instance


# -- calls, and what the object shows --------------------------------------------------------------
def test_one_call_gives_a_prefix_and_it_is_published_at_once(system: pumped.System) -> None:
    instance = waiting(system)
    system.settle()
    assert system.mutations() == {"Assign": 1}
    assert shape(system, instance) == [(0, 1)]
    assert len(system.pool()) == 16
    prefix = IPv4Network(system.interfaces(instance)[0].prefixes[0])
    assert {str(prefix[0]), str(prefix[-1])} <= set(system.pool())
    shown_as_it_is(system, instance)
    assert system.status().ready
    # No read of EC2 came between the answer and the object.
    assert system.reads()["DescribeNetworkInterfaces"] == 1
    system.fresh()
    system.later(60)
    system.resync()
    assert (system.mutations(), system.writes()) == ({}, {})


def test_a_new_interface_comes_with_its_prefixes(system: pumped.System) -> None:
    instance = waiting(system, eni=PODS, ipam={"pre-allocate": 40})
    system.settle()
    assert system.mutations() == {"Create": 1, "Attach": 1, "Modify": 1}
    assert shape(system, instance) == [(0, 0), (0, 3)]
    shown_as_it_is(system, instance)


def test_a_burst_of_a_hundred_pods_is_one_call_per_interface(system: pumped.System) -> None:
    instance = waiting(system, eni=PODS)
    system.settle()
    system.fresh()
    system.use(100, phantom=True)
    system.settle()
    assert system.mutations() == {"Assign": 1}
    assert shape(system, instance) == [(0, 0), (0, 7)]
    assert len(system.pool()) == 112
    shown_as_it_is(system, instance)


def test_the_ledger_holds_sixteen_addresses_for_a_prefix(system: pumped.System) -> None:
    waiting(system, ipam={"pre-allocate": 20})
    waiting(system, "other", eni=PODS)
    system.settle()
    assert system.reserved() == {system.built.node_subnets["a"]: 32 + 17}
    system.later(60)
    system.resync()
    assert system.reserved() == {}


@pytest.mark.parametrize(("eni", "held"), [({}, 32), (PODS, 33)], ids=["assign", "create"])
def test_they_are_held_from_before_the_call(system: pumped.System, eni: dict[str, Any], held: int) -> None:
    waiting(system, eni=eni, ipam={"pre-allocate": 20})
    worker = system.process()
    system.dies(worker.ec2, "create_interface" if eni else "assign_prefixes", after=False)
    with pytest.raises(pumped.Killed):
        system.pump(worker)
    assert list(system.reserved().values()) == [held]
    system.settle(within_seconds=300)
    system.resync()
    assert system.status().ready
    assert system.clean()


def test_nodes_share_the_last_prefixes_of_a_subnet(system: pumped.System) -> None:
    """Three blocks, and eight nodes that all want one: nobody is refused more than once, and all are served."""
    small = small_subnet(system, 0)
    eni = PODS | {"subnet-ids": [small, system.built.pod_subnets["a"]]}
    instances = {f"node-{n}": system.add_node(f"node-{n}", eni=eni) for n in range(8)}
    system.settle()
    assert all(shape(system, instance) == [(0, 0), (0, 1)] for instance in instances.values())
    for name, instance in instances.items():
        shown_as_it_is(system, instance, name)


def test_a_mixed_fleet(system: pumped.System) -> None:
    """Nitro with prefixes, Xen and a node that opted out without, and one that has single addresses already."""
    nitro, xen = system.add_node("nitro"), system.add_node("xen", "m4.large")
    out = system.add_node("out", eni={"disable-prefix-delegation": True})
    old = system.launch()
    system.ec2.assign_addresses(system.interfaces(old)[0].id, 3)
    system.add_node("old", instance=old, ipam={"pre-allocate": 30})
    system.settle()
    assert {
        name: shape(system, each) for name, each in {"nitro": nitro, "xen": xen, "out": out, "old": old}.items()
    } == {
        "nitro": [(0, 1)],
        "xen": [(8, 0)],
        "out": [(8, 0)],
        "old": [(9, 0), (0, 2)],
    }
    for name, instance in {"nitro": nitro, "xen": xen, "out": out, "old": old}.items():
        shown_as_it_is(system, instance, name)
        assert system.status(name).ready


def test_switched_off_again(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pumped.running(redis_url, tmp_path, monkeypatch) as system:
        instance = system.launch()
        first = system.interfaces(instance)[0]
        add_prefixes(system, first.id, 1)
        system.add_node(instance=instance)
        system.settle()
        assert system.mutations() == {}
        shown_as_it_is(system, instance)
        system.use(12)
        system.settle()
        assert shape(system, instance) == [(4, 1)]
        shown_as_it_is(system, instance)


# -- subnets without a prefix ----------------------------------------------------------------------
def test_a_sibling_is_tried_before_single_addresses(system: pumped.System) -> None:
    """C20-07: same selectors, by free addresses."""
    fragmented, healthy = small_subnet(system, 0, role="pods"), small_subnet(system, 1, role="pods")
    fragment(system, 0)
    system.ec2.add_interface(healthy, secondary_count=4)  # fewer free addresses than the other
    instance = waiting(system, eni=PODS | {"subnet-tags": {"role": "pods"}})
    system.settle()
    assert [call.code for call in system.ec2.calls("CreateNetworkInterface")] == ["InsufficientCidrBlocks", "OK"]
    assert shape(system, instance) == [(0, 0), (0, 1)]
    assert system.interfaces(instance)[1].subnet_id == healthy
    # The other nodes know it already.
    system.fresh()
    second = waiting(system, "second", eni=PODS | {"subnet-ids": [fragmented, healthy]})
    system.settle()
    assert system.mutations() == {"Create": 1, "Attach": 1, "Modify": 1}
    assert system.interfaces(second)[1].subnet_id == healthy
    assert system.clean()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("InsufficientCidrBlocks", "The specified subnet does not have enough free cidr blocks."),
        ("InvalidParameterValue", "There aren't sufficient free Ipv4 addresses or prefixes"),
    ],
)
def test_single_addresses_when_no_subnet_has_a_prefix(system: pumped.System, code: str, message: str) -> None:
    only = {"subnet-ids": [system.built.node_subnets["a"]]}
    system.ec2.add_faults([Fault(action="AssignPrivateIpAddresses", code=code, message=message)])
    instance = waiting(system, eni=only, ipam={"pre-allocate": 30})
    system.settle()
    # Nine fit on the interface; a new one has no prefix either.
    assert [call.code for call in system.ec2.calls("AssignPrivateIpAddresses")] == [code, "OK"]
    assert shape(system, instance) == [(9, 0), (9, 0), (9, 0)]
    shown_as_it_is(system, instance)
    assert system.status().reason == "at-capacity"


@pytest.mark.parametrize("new", [True, False], ids=["new interface", "attached one"])
def test_prefixes_are_tried_again_later_and_the_wait_grows(system: pumped.System, *, new: bool) -> None:
    only = small_subnet(system, 0)
    taken = fragment(system, 0)
    instance = system.launch(subnet=system.built.node_subnets["a"] if new else only)
    waiting(system, instance=instance, eni=(PODS if new else {}) | {"subnet-ids": [only]}, ipam={"pre-allocate": 4})

    def more_used(count: int) -> list[str]:
        system.fresh()
        system.use(count, phantom=True)
        system.settle()
        return [call.code for call in system.ec2.calls("AssignPrivateIpAddresses")]

    system.settle()
    assert shape(system, instance)[-1] == (4, 0)
    assert more_used(1) == ["OK"]  # two minutes long nobody asks
    system.later(121)
    system.resync()
    assert more_used(2) == ["InsufficientCidrBlocks", "OK"]
    system.later(121)
    system.resync()
    assert more_used(3) == ["OK"]  # four minutes now
    assert shape(system, instance)[-1] == (7, 0)
    system.ec2.vacate_addresses(only, taken[1:])
    system.later(121)
    system.resync()
    assert more_used(4) == ["OK"]
    assert shape(system, instance)[-1] == (7, 1)  # the interface that fell back takes prefixes again
    shown_as_it_is(system, instance)


def test_the_fallback_asks_for_no_more_than_there_are_slots(system: pumped.System) -> None:
    """C20-05: eight prefixes on nine slots."""
    instance = system.launch()
    add_prefixes(system, system.interfaces(instance)[0].id, 8)
    system.add_node(instance=instance, eni={"subnet-ids": [system.built.node_subnets["a"]]})
    system.settle()
    system.fresh()
    system.ec2.add_faults([Fault(action="*PrivateIpAddresses", code="InsufficientCidrBlocks")])
    system.use(125, phantom=True)
    system.settle()
    assert [call.code for call in system.ec2.calls("AssignPrivateIpAddresses")] == ["InsufficientCidrBlocks", "OK"]
    assert shape(system, instance)[0] == (1, 8)
    assert system.status().ready
    shown_as_it_is(system, instance)


@pytest.mark.parametrize("code", ["UnauthorizedOperation", "RequestLimitExceeded", "InternalError"])
def test_other_refusals_lead_to_no_single_addresses(system: pumped.System, code: str) -> None:
    status = 500 if code == "InternalError" else 400
    system.ec2.add_faults([Fault(action="AssignPrivateIpAddresses", code=code, status=status)])
    instance = waiting(system)
    system.settle(within_seconds=300)
    assert shape(system, instance) == [(0, 1)]
    assert all("Ipv4PrefixCount" in call.parameters for call in system.ec2.calls("AssignPrivateIpAddresses"))
    assert system.clean()


# -- unclear answers -------------------------------------------------------------------------------
@pytest.mark.parametrize("effect", [True, False], ids=["done", "not done"])
@pytest.mark.parametrize("eni", [{}, PODS], ids=["assign", "create"])
def test_a_lost_answer_costs_no_second_prefix(system: pumped.System, eni: dict[str, Any], *, effect: bool) -> None:
    action = "CreateNetworkInterface" if eni else "AssignPrivateIpAddresses"
    system.ec2.add_faults([Fault(action=action, drop=True, after=effect, code="" if effect else "InternalError")])
    instance = waiting(system, eni=eni)
    system.settle(within_seconds=120)
    assert sum(prefixes for _, prefixes in shape(system, instance)) == 1
    shown_as_it_is(system, instance)
    assert system.status().ready


def test_prefixes_that_reads_lack_stay_until_two_agree(system: pumped.System) -> None:
    instance = waiting(system)
    system.settle()
    system.use(10)
    interface = system.interfaces(instance)[0]
    with system.built.world.lock:
        unassign_addresses(system.built.world, interface_id=interface.id, prefixes=interface.prefixes)
    system.later(10)
    system.resync()
    assert len(system.pool()) >= 16
    assert interface.prefixes[0] in system.object()["status"]["eni"]["enis"][interface.id]["prefixes"]
    system.later(61)
    system.resync()
    system.settle(within_seconds=60)
    assert interface.prefixes[0] not in system.interfaces(instance)[0].prefixes
    shown_as_it_is(system, instance)
