"""What the pages show of a status, chosen and arranged for the templates. Figures come from the status as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode

from eni_tasks.services.status import NOT_PUBLISHED, FleetStatus, InterfaceStatus, ItemState, NodeStatus
from eni_tasks.state.summary import BreakerSummary, BucketSummary, StateSummary, SubnetSummary, WorkSummary

NODES_PER_PAGE = 50
NAME_LONGEST = 253  # of a Kubernetes object
_PAGE = re.compile(r"[1-9][0-9]{0,5}")


class Query(NamedTuple):
    """What of the fleet is asked for.

    Nodes whose names begin with `prefix`; without one, those that are not at size, or with `everything` all. `page`
    counts from 1. With `refresh` the browser asks again by itself.
    """

    prefix: str = ""
    everything: bool = False
    page: int = 1
    refresh: bool = False

    @classmethod
    def parse(cls, text: str) -> Query:
        """Read the query of a URL; what can't be understood counts as not given."""
        given = {name: values[-1].strip() for name, values in parse_qs(text[:4096]).items()}
        page = given.get("page", "")
        return cls(
            prefix=given.get("prefix", "").lower()[:NAME_LONGEST],
            everything=given.get("show") == "all",
            page=int(page) if _PAGE.fullmatch(page) else 1,
            refresh="refresh" in given,
        )

    def link(self, **changes: Any) -> str:
        """The fleet's page with this query, some of it changed."""
        query = self._replace(**changes)
        fields = {
            "prefix": query.prefix,
            "show": "all" if query.everything else "",
            "page": query.page if query.page > 1 else "",
            "refresh": "on" if query.refresh else "",
        }
        text = urlencode({name: value for name, value in fields.items() if value})
        return f"./?{text}" if text else "./"


class NodeList(NamedTuple):
    """One page of the nodes that a query asks for: `total` in all, of which `nodes` are `first` to `last`."""

    nodes: Sequence[NodeStatus]
    total: int
    page: int
    pages: int

    @property
    def first(self) -> int:
        """The number of the first node shown, from 1."""
        return (self.page - 1) * NODES_PER_PAGE + 1

    @property
    def last(self) -> int:
        """The number of the last node shown."""
        return self.first + len(self.nodes) - 1


def node_list(fleet: FleetStatus, query: Query) -> NodeList:
    """Choose the nodes to list, those that need a person most first."""
    if query.prefix:
        found = [each for each in fleet.nodes if each.node.startswith(query.prefix)]
    else:
        found = [each for each in fleet.nodes if query.everything or not each.ready]
    found.sort(key=_urgency)
    pages = max(1, -(-len(found) // NODES_PER_PAGE))
    page = min(query.page, pages)
    start = (page - 1) * NODES_PER_PAGE
    return NodeList(found[start : start + NODES_PER_PAGE], len(found), page, pages)


def _urgency(status: NodeStatus) -> tuple[bool, bool, int, str]:
    return status.ready, status.available > status.used, -status.needed, status.node


class Totals(NamedTuple):
    """The addresses of all nodes, and how many nodes' objects do not show yet what is known."""

    available: int
    used: int
    needed: int
    not_shown: int


def totals(fleet: FleetStatus) -> Totals:
    """Add up the nodes' figures."""
    return Totals(
        available=sum(each.available for each in fleet.nodes),
        used=sum(each.used for each in fleet.nodes),
        needed=sum(each.needed for each in fleet.nodes),
        not_shown=fleet.reasons.get(NOT_PUBLISHED, 0),
    )


# -- bars -----------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A part of a bar: what it stands for, and where it is, in percent of the bar's length."""

    kind: str
    start: float
    length: float


class Bar(NamedTuple):
    """A bar. Its parts are drawn; `words` say the same."""

    parts: Sequence[Part]
    words: str


def bar(amounts: Mapping[str, float], words: str, *, whole: float = 0.0) -> Bar:
    """Arrange amounts in a bar, one after the other.

    Args:
        amounts: by kind; those that are not positive are left out.
        words: what the bar says.
        whole: what the bar's length stands for; at least the sum of the amounts.
    """
    positive = {kind: amount for kind, amount in amounts.items() if amount > 0}
    length = max(whole, sum(positive.values())) or 1.0
    parts, start = [], 0.0
    for kind, amount in positive.items():
        parts.append(Part(kind, round(start, 2), round(100 * amount / length, 2)))
        start += 100 * amount / length
    return Bar(parts, words)


def pool_bar(status: NodeStatus | Totals) -> Bar:
    """The addresses of a node, or of all: used, free, and those that are missing."""
    free = max(0, status.available - status.used)
    words = f"{status.used:,} used, {free:,} free" + (f", {status.needed:,} needed" if status.needed else "")
    return bar({"used": status.used, "free": free, "needed": status.needed}, words)


def bucket_bar(bucket: BucketSummary, breaker: BreakerSummary | None) -> Bar:
    """The tokens that are left of a rate limit."""
    if not bucket.size:
        return Bar((), "no limit of ours")
    rate = bucket.refill_per_second * bucket.share
    words = f"{bucket.tokens:.0f} of {bucket.size:g} calls left, {round(rate, 1):g} more a second"
    kind = "stopped" if breaker else "slowed" if bucket.share < 1 else "left"
    return bar({kind: bucket.tokens}, words, whole=bucket.size)


class Budgets(NamedTuple):
    """The rate limits of EC2's actions: those that a person would look at, and those that are full."""

    drawn_upon: Sequence[tuple[str, BucketSummary]]
    full: Sequence[tuple[str, BucketSummary]]


def budgets(summary: StateSummary) -> Budgets:
    """Divide the rate limits; one that is stopped or throttled is drawn upon, however many tokens it holds."""
    drawn_upon = [
        (action, bucket)
        for action, bucket in summary.buckets.items()
        if action in summary.breakers or bucket.throttled_at is not None or bucket.tokens < bucket.size
    ]
    return Budgets(drawn_upon, [each for each in summary.buckets.items() if each not in drawn_upon])


def subnet_bar(subnet: SubnetSummary) -> Bar:
    """The addresses of a subnet: taken, reserved since it was described, free."""
    taken = max(0, subnet.size - subnet.free)
    words = f"{subnet.available:,} free" + (f" of {subnet.size:,}" if subnet.size else "")
    words += f", {subnet.reserved:,} reserved since the last read" if subnet.reserved else ""
    return bar({"used": taken, "reserved": subnet.reserved, "free": subnet.available}, words)


def work_bar(work: WorkSummary) -> Bar:
    """The pending work of one kind, by what it is doing."""
    queued = work.pending_count - work.claimed_count - work.waiting_count
    words = f"{work.claimed_count:,} running, {queued:,} queued, {work.waiting_count:,} waiting"
    amounts = {"running": work.claimed_count, "queued": queued, "waiting": work.waiting_count}
    return bar(amounts, words if work.pending_count else "nothing to do")


def interface_bar(interface: InterfaceStatus) -> Bar:
    """What an interface holds for pods, by its state, and what still fits on it."""
    counts = {state: sum(item.state is state for item in interface.items) for state in ItemState}
    shown = {_KINDS[state]: count for state, count in counts.items() if count}
    words = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count) or "no addresses for pods"
    if interface.room:
        words += f", room for {interface.room} more"
    return bar(shown, words, whole=sum(counts.values()) + (interface.room or 0))


def kind(state: ItemState) -> str:
    """The kind under which an item's state is drawn."""
    return _KINDS[state]


_KINDS = {
    ItemState.USED: "used",
    ItemState.FREE: "free",
    ItemState.NOT_SHOWN: "not-shown",
    ItemState.NOT_FOR_PODS: "not-for-pods",
}


def subnets_by_room(subnets: Iterable[SubnetSummary]) -> list[SubnetSummary]:
    """Subnets, the fullest first."""
    return sorted(subnets, key=lambda subnet: (subnet.available, subnet.id))
