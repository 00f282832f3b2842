"""Whatever the world looks like: no step goes beyond a limit, and steps end at size or with a reason."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from vector_world import NOW, POLICY, with_interfaces
from worlds import eni, planned, subnet, world

from eni_tasks.domain import watermark
from eni_tasks.domain.figures import cap
from eni_tasks.domain.planner import plan
from eni_tasks.model.network import Limits
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Assign, Reason

SUBNETS = ("subnet-a", "subnet-b", "subnet-c")

# EC2 has just refused a further interface.
REFUSED = Memory(interface_refusals=1, interface_refused_at=NOW)


@st.composite
def worlds(draw):
    limits = Limits(
        instance_type="any",
        max_interfaces=draw(st.integers(1, 6)),
        ipv4_per_interface=draw(st.integers(1, 12)),
        hypervisor=draw(st.sampled_from(("nitro", "nitro", "xen"))),
    )
    indexes = draw(st.sets(st.integers(1, 7), max_size=limits.max_interfaces - 1))
    slots = limits.ipv4_per_interface - 1
    interfaces = [
        eni(
            index,
            singles := draw(st.one_of(st.just(0), st.integers(0, slots))),
            draw(st.sampled_from(SUBNETS)),
            prefixes=blocks(index, 0, draw(st.one_of(st.just(0), st.integers(0, slots - singles)))),
            tags=draw(st.sampled_from(({}, {"no": "pods"}))),
            attachment_status=draw(st.sampled_from(("attached", "attached", "attached", "detaching"))),
            requester_managed=draw(st.sampled_from((False, False, False, True))),
        )
        for index in (0, *sorted(indexes))
    ]
    subnets = [subnet(name, draw(st.integers(0, 90))) for name in SUBNETS]
    subnets = [msgspec.structs.replace(s, tags={"for": draw(st.sampled_from(("pods", "nodes")))}) for s in subnets]
    return world(
        *interfaces,
        limits=limits,
        subnets=tuple(subnets),
        cooling_down=frozenset(draw(st.sets(st.sampled_from(SUBNETS), max_size=2))),
        reserved={name: draw(st.integers(0, 20)) for name in SUBNETS},
        no_prefix=frozenset(draw(st.sampled_from(((), (), ("subnet-a",))))),
        memory=draw(st.sampled_from((Memory(), REFUSED, Memory(fell_back=frozenset({"eni-0", "eni-1"}))))),
        used=draw(st.integers(0, 80)),
        pre_allocate=draw(st.integers(-1, 20)),
        min_allocate=draw(st.integers(0, 40)),
        max_allocate=draw(st.integers(0, 80)),
        max_above_watermark=draw(st.integers(0, 10)),
        first_interface_index=draw(st.integers(0, 4)),
        use_primary_address=draw(st.booleans()),
        exclude_interface_tags=draw(st.sampled_from(({}, {"no": "pods"}))),
        subnet_tags=draw(st.sampled_from(({}, {"for": "pods"}))),
        node_subnet_id=draw(st.sampled_from(("", *SUBNETS))),
    )


def blocks(index, first, count):
    """Name /28 prefixes of an interface."""
    return tuple(f"10.{index}.{2 + number // 16}.{16 * (number % 16)}/28" for number in range(first, first + count))


def carry_out(snapshot, action):
    """Do to the world what EC2 would."""
    singles = action.count if isinstance(action, Assign) else action.secondary_count
    taken = singles + 16 * action.prefix_count + (0 if isinstance(action, Assign) else 1)
    subnets = dict(snapshot.infrastructure.subnets)
    there = subnets[action.subnet_id]
    subnets[there.id] = msgspec.structs.replace(there, free=there.free - taken)
    if isinstance(action, Assign):
        interfaces = tuple(
            grown(interface, action) if interface.id == action.interface_id else interface
            for interface in snapshot.interfaces
        )
    else:
        prefixes = blocks(action.device_index, 0, action.prefix_count)
        made = eni(action.device_index, action.secondary_count, action.subnet_id, prefixes=prefixes)
        interfaces = (*snapshot.interfaces, made)
    infrastructure = msgspec.structs.replace(snapshot.infrastructure, subnets=subnets)
    return msgspec.structs.replace(with_interfaces(snapshot, interfaces), infrastructure=infrastructure)


def grown(interface, action):
    index, held = interface.device_index, len(interface.addresses)
    added = tuple(f"10.{index}.1.{number}" for number in range(held, held + action.count))
    return msgspec.structs.replace(
        interface,
        addresses=interface.addresses + added,
        prefixes=interface.prefixes + blocks(index, len(interface.prefixes), action.prefix_count),
    )


def check_limits(before, action, after, policy):
    limits = before.limits
    free = after.infrastructure.subnets[action.subnet_id].free
    assert free >= before.reserved[action.subnet_id]
    assert action.subnet_id not in before.cooling_down
    slots_taken = (1 + len(interface.addresses) + len(interface.prefixes) for interface in after.interfaces)
    assert max(slots_taken) <= limits.ipv4_per_interface
    if isinstance(action, Assign):
        assert (action.count > 0) != (action.prefix_count > 0)
    else:
        assert len(after.interfaces) <= limits.max_interfaces
        assert before.memory is not REFUSED
        assert len({interface.device_index for interface in after.interfaces}) == len(after.interfaces)
        assert action.device_index >= before.node.first_interface_index
        assert action.secondary_count + action.prefix_count + before.node.use_primary_address > 0
        assert not (action.secondary_count and action.prefix_count)
        assert action.security_groups
    if action.prefix_count:
        assert policy.prefix_delegation
        assert limits.hypervisor == "nitro"
        assert action.subnet_id not in before.no_prefix
    most = cap(before, policy, limits, plan(before, policy, NOW).figures.available)
    assert plan(after, policy, NOW).figures.available <= most


@given(worlds(), st.booleans(), st.sets(st.sampled_from(SUBNETS)))
def test_steps_keep_all_limits_and_end(snapshot, prefix_delegation, fragmented):
    policy = msgspec.structs.replace(POLICY, prefix_delegation=prefix_delegation)
    for _ in range(2 * snapshot.limits.max_interfaces + 2 * len(SUBNETS)):
        decided = plan(snapshot, policy, NOW)
        if decided.action is None:
            break
        if decided.action.prefix_count and decided.action.subnet_id in fragmented:
            # EC2 refuses: the subnet has no block, however many addresses are free.
            refused = snapshot.no_prefix | {decided.action.subnet_id}
            assert refused != snapshot.no_prefix
            snapshot = msgspec.structs.replace(snapshot, no_prefix=refused)
            continue
        after = carry_out(snapshot, decided.action)
        check_limits(snapshot, decided.action, after, policy)
        assert plan(after, policy, NOW).figures.needed < decided.figures.needed
        snapshot = after
    decided = plan(snapshot, policy, NOW)
    assert decided.action is None
    assert decided.blocked == (decided.figures.needed > 0 or decided.figures.capacity == 0)
    assert decided.reason != Reason.DEFICIT
    assert decided == plan(snapshot, policy, NOW)


counts = st.integers(0, 300)


@given(counts, counts, st.integers(-1, 300), counts, counts)
def test_giving_back_the_excess_leaves_no_need(available, used, pre_allocate, min_allocate, above):
    wish = {"used": used, "pre_allocate": pre_allocate, "min_allocate": min_allocate}
    excess = watermark.excess(available=available, max_above_watermark=above, **wish)
    need = watermark.needed(available=available, cap=None, **wish)
    assert excess == 0 or need == 0
    assert excess == 0 or watermark.needed(available=available - excess, cap=None, **wish) == 0


@given(worlds())
def test_the_order_in_which_facts_arrive_does_not_matter(snapshot):
    infrastructure = snapshot.infrastructure
    subnets = dict(reversed(infrastructure.subnets.items()))
    turned = msgspec.structs.replace(
        with_interfaces(snapshot, snapshot.interfaces[::-1]),
        infrastructure=msgspec.structs.replace(infrastructure, subnets=subnets),
    )
    assert planned(turned) == planned(snapshot)
