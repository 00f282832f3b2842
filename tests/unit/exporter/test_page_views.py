"""Which nodes a page lists, what a bar draws, and what several open pages share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from statuses import fleet

from eni_tasks.errors import StateUnavailable
from eni_tasks.exporter.page.kept import Kept
from eni_tasks.exporter.page.views import NODES_PER_PAGE, Part, Query, bar, node_list
from eni_tasks.model.network import NodeName
from eni_tasks.services.status import FleetStatus, NodeStatus


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", Query()),
        ("prefix=+IP-10+&show=all&page=3&refresh=on", Query("ip-10", everything=True, page=3, refresh=True)),
        ("page=0&show=x", Query()),
        ("page=-1", Query()),
        ("page=%D9%A3", Query()),  # a digit, but none of ours
        ("page=99999999999999999999", Query()),
        ("page=2&page=x", Query()),
        ("prefix=" + "a" * 5000, Query("a" * 253)),
        ("&".join("a=b" for _ in range(50)), Query()),
        ("%ff=%00&;;&prefix", Query()),
    ],
)
def test_a_query_of_any_form_is_read(text: str, query: Query) -> None:
    assert Query.parse(text) == query


def test_links_carry_the_query() -> None:
    query = Query("ip-10&x", everything=True, page=3, refresh=True)
    assert Query.parse(query.link().removeprefix("./?")) == query
    assert query.link(prefix="", everything=False, page=1, refresh=False) == "./"


def many(count: int) -> FleetStatus:
    nodes = [NodeStatus(node=NodeName(f"n{number:04}"), ready=number % 50 != 0) for number in range(count)]
    return fleet(nodes=tuple(nodes), total_count=count)


@pytest.mark.parametrize(
    ("query", "total", "first", "last", "names"),
    [
        (Query(), 100, 1, 50, ["n0000", "n0050"]),
        (Query(page=2), 100, 51, 100, ["n2500", "n2550"]),
        (Query(everything=True, page=100), 5000, 4951, 5000, ["n4949", "n4951"]),
        (Query(everything=True, page=999), 5000, 4951, 5000, ["n4949", "n4951"]),
        (Query("n00"), 100, 1, 50, ["n0000", "n0050"]),
        (Query("n499"), 10, 1, 10, ["n4990", "n4991"]),
        (Query("none"), 0, 1, 0, []),
    ],
)
def test_a_page_of_nodes(query: Query, total: int, first: int, last: int, names: list[str]) -> None:
    listed = node_list(many(5000), query)
    assert (listed.total, listed.first, listed.last) == (total, first, last)
    assert len(listed.nodes) == min(NODES_PER_PAGE, last - first + 1)
    assert [each.node for each in listed.nodes[:2]] == names


def test_nodes_that_need_a_person_most_come_first() -> None:
    nodes = [
        NodeStatus(node=NodeName("well"), ready=True),
        NodeStatus(node=NodeName("little"), available=8, used=7, needed=1),
        NodeStatus(node=NodeName("empty"), available=8, used=8, needed=1),
        NodeStatus(node=NodeName("much"), available=8, used=1, needed=9),
    ]
    listed = node_list(fleet(nodes=tuple(nodes)), Query(everything=True))
    assert [each.node for each in listed.nodes] == ["empty", "much", "little", "well"]


def test_a_bar_is_drawn_to_scale() -> None:
    assert bar({"used": 3, "none": 0, "free": 1}, "").parts == [Part("used", 0.0, 75.0), Part("free", 75.0, 25.0)]
    assert bar({"left": 5}, "", whole=20).parts == [Part("left", 0.0, 25.0)]
    assert bar({"left": 30}, "", whole=20).parts == [Part("left", 0.0, 100.0)]
    assert bar({"less": -1}, "").parts == []


# -- what is kept --------------------------------------------------------------------------------
def test_many_who_ask_at_once_cost_one_read() -> None:
    kept: Kept[int] = Kept(60)
    reads: list[int] = []
    go_on, began = threading.Event(), threading.Event()

    def read() -> int:
        reads.append(1)
        began.set()
        assert go_on.wait(10)
        return 7

    with ThreadPoolExecutor(10) as threads:
        answers = [threads.submit(kept.get, "fleet", read) for _ in range(10)]
        assert began.wait(10)
        go_on.set()
        assert [answer.result() for answer in answers] == [7] * 10
    assert len(reads) == 1
    assert kept.get("another", lambda: 8) == 8


def test_an_error_is_kept_as_well() -> None:
    kept: Kept[int] = Kept(60)

    def fail() -> int:
        raise StateUnavailable("silent")

    for _ in range(2):
        with pytest.raises(StateUnavailable, match="silent"):
            kept.get("fleet", fail)
    with pytest.raises(StateUnavailable):
        kept.get("fleet", lambda: 1)


def test_what_is_old_is_read_again_and_forgotten() -> None:
    kept: Kept[int] = Kept(0)
    assert [kept.get("fleet", lambda number=number: number) for number in range(3)] == [0, 1, 2]
    for number in range(100):
        kept.get(f"n{number}", lambda: 0)
    assert len(kept._answers) == 1
