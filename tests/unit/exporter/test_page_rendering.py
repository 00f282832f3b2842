"""The status page's HTML: what it says of each state, that it is well-formed, and that nothing it is given gets out."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from statuses import ACTION, NOW, ONE, WAITS, WELL, fleet, summary

from eni_tasks.exporter.page.links import Links
from eni_tasks.exporter.page.rendering import STYLE, Pages, prose
from eni_tasks.exporter.page.views import Query
from eni_tasks.model.plan import Figures, Plan, Reason
from eni_tasks.model.work import Pause, WorkKind
from eni_tasks.services.status import NOT_PUBLISHED, NOT_UNDERSTOOD, FleetStatus, NodeDetails, NodePlan, NodeStatus
from eni_tasks.state.events import Event
from eni_tasks.state.summary import BreakerSummary, SubnetSummary

BLOCKS = {"dt", "dd"}
VOID = {"meta", "link", "input"}
HOSTILE = "\"'><img src=x onerror=alert(1)></svg><script>alert(2)</script>{{7*7}}&"
PAGES = Pages(Links("", "", "prod"))
LINKED = Pages(Links("https://flower.example/f", "https://grafana.example", "prod"))
PLAN = NodePlan(
    now=NOW,
    plan=Plan(action=None, reason=Reason.DEFICIT, explanation=(), figures=Figures()),
    creating=True,
    work={},
    obstacles=("Mutations are paused by Ada: a move. `eni-tasks resume` lets them continue.",),
)
EVENT = Event(id="1000000000-0", what="Pause", fields={"who": "Ada", "node": "well"})


class Document(HTMLParser):
    """A page as a browser takes it apart; fails where tags are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.said += " " if tag in BLOCKS else ""
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data

    @property
    def words(self) -> str:
        return " ".join(self.said.split())

    def all(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.tags if (value := attributes.get(attribute))]


def shown(status: FleetStatus | None = None, query: Query = Query(), pages: Pages = PAGES, **changes: Any) -> Document:  # noqa: B008 - immutable
    return Document(pages.fleet(status or fleet(**changes), [EVENT], query))


def node(details: NodeDetails = ONE, plan: NodePlan | None = PLAN, pages: Pages = PAGES) -> Document:
    return Document(pages.node(details, plan))


def everything() -> list[Document]:
    return [shown(), shown(query=Query(everything=True, refresh=True)), shown(pages=LINKED), node(), node(pages=LINKED)]


# -- what it says ------------------------------------------------------------------------------
def test_the_fleet_at_a_glance() -> None:
    words = shown().words
    assert "2 of 3 nodes are not at size" in words
    assert "Nodes 3 At size 1 In deficit 1 Not shown yet 0 At capacity 1 Waiting 1" in words
    assert "Addresses 7 used, 9 free, 10 needed" in words
    assert "Interfaces are being created for 1 node: full" in words
    assert "ec2 3, apiserver 0, resync 0" in words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nodes": (), "total_count": 0, "ready_count": 0, "reasons": {}}, "No nodes are known: is a watcher running"),
        ({"nodes": (WELL,), "total_count": 1, "ready_count": 1, "reasons": {}}, "The only node is at size"),
        ({"nodes": (WAITS,), "total_count": 1, "ready_count": 0}, "1 of 1 nodes is not at size"),
        ({"total_count": 5000, "ready_count": 5000}, "All 5,000 nodes are at size"),
    ],
    ids=["none", "one", "one-in-deficit", "all"],
)
def test_the_headline_says_how_it_is(changes: dict[str, Any], words: str) -> None:
    assert words in shown(**changes).words


@pytest.mark.parametrize(
    ("changes", "word", "words"),
    [
        ({"pause": Pause(who="Ada", why="a move", since=NOW - 300)}, "paused", "PAUSED for 5 min by Ada: a move."),
        ({"breakers": {ACTION: BreakerSummary(until=NOW + 9, why="Denied")}}, "refused", f"{ACTION} is stopped for"),
        ({}, "throttled", f"EC2 throttled {ACTION} 3 s ago: all workers together call it 2.5 instead of 5 times"),
        ({}, "cooling down", "tight in b reported that it is full: no node chooses it for 60 s."),
        ({"read_failure": "RequestExpired"}, "reads fail", "The last read of EC2 failed: RequestExpired."),
        ({"orphans_count": 2}, "left behind", "Interfaces left behind: 2; eni-tasks orphans --dry-run lists them."),
        ({"generation": None}, "state lost", "Redis is empty, and no watcher has noticed yet"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_what_concerns_all_nodes_is_named(changes: dict[str, Any], word: str, words: str) -> None:
    assert f"{word} {words}" in shown(summary=summary(**changes)).words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ready": True, "reason": "at-size"}, "at size"),
        ({"reason": "deficit", "capacity": 27, "available": 8, "used": 3}, "in deficit"),
        ({"reason": "deficit", "capacity": 27, "available": 8, "used": 8}, "in deficit, no free address"),
        ({"reason": "at-capacity"}, "at capacity"),
        ({"reason": NOT_PUBLISHED}, "not shown yet"),
        ({"reason": "instance-not-read"}, "instance-not-read"),
        ({"reason": NOT_UNDERSTOOD}, "object-not-understood"),
    ],
)
def test_a_node_in_a_few_words(changes: dict[str, Any], words: str) -> None:
    status = NodeStatus(node="n", explanation=("Because.",), **changes)  # type: ignore[arg-type]
    document = shown(nodes=(status,), query=Query(everything=True))
    assert f"{words} {'' if status.ready else 'Because.'}".strip() in document.words.partition("Name begins with")[2]
    assert words in node(msgspec.structs.replace(ONE, status=status)).words


def test_a_node_and_what_explains_it() -> None:
    words = node().words
    for each in (
        "2 used, 6 free, 4 needed",
        "n holds 8. 4 more are needed.",
        "Trouble: EC2 said no. 3 failed runs in a row.",
        "counts as unknown: a mutation is under way.",
        "The journal is at step created of making eni-9",
        "Next: the creation of an interface continues, then nothing.",
        "In the way: Mutations are paused by Ada: a move. eni-tasks resume lets them continue.",
        "Read from EC2 50 s ago Last action assigned 2.",
        "10.0.0.2 used 10.0.0.3 not shown",
        "1970-01-12 13:46:40 Unlock kinds=maintain",
    ):
        assert each in words
    assert "In the way" not in node(plan=None).words
    assert "maintain: waits for 34 s; eni-tasks maintain ends the wait." in node(plan=None).words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"room": 0}, "full"),
        ({"room": None}, "gets no addresses"),
        ({"subnet_cooling_down": True, "subnet_room": 0}, "subnet cooling down"),
        ({"subnet_room": 0}, "subnet gives no addresses"),
        ({"status": "detaching"}, "detaching"),
        ({}, ""),
    ],
)
def test_an_interface_and_why_it_gets_no_more(changes: dict[str, Any], words: str) -> None:
    interface = msgspec.structs.replace(ONE.interfaces[0], **changes)
    document = node(msgspec.structs.replace(ONE, interfaces=(interface,)))
    assert f"eni-1 {words} Device 0".replace("  ", " ") in document.words
    cells = [attributes["class"] for tag, attributes in document.tags if tag == "li" and "class" in attributes]
    assert cells == ["trouble", "trouble", "trouble", "used", "not-shown", *["room"] * (interface.room or 0)]


def test_bars_say_in_words_what_they_draw() -> None:
    drawn = [attributes for tag, attributes in shown().tags if attributes.get("role") == "img"]
    said = [attributes["aria-label"] for attributes in drawn]
    assert "7 used, 9 free, 10 needed" in said
    assert "13 of 100 calls left, 2.5 more a second" in said
    assert "2 free, 3 reserved since the last read" in said
    sized = SubnetSummary(id="s", availability_zone="a", free=5, reserved=3, cooling_down_until=None, size=251)  # type: ignore[arg-type]
    (bar,) = [each for each in shown(summary=summary(subnets=(sized,))).all("aria-label") if "251" in each]
    assert bar == "2 free of 251, 3 reserved since the last read"


def test_links_lead_to_flower_and_grafana_where_they_are_set() -> None:
    assert [href for href in shown().all("href") if "://" in href] == []
    assert [href for href in shown(pages=LINKED).all("href") if "://" in href] == [
        "https://flower.example/f/tasks",
        "https://grafana.example/d/eni-tasks?var-cluster=prod",
    ]
    assert [href for href in node(pages=LINKED).all("href") if "://" in href] == [
        "https://flower.example/f/tasks?name=eni.%20args%3An",
        "https://grafana.example/d/eni-tasks?var-cluster=prod&var-node=n",
    ]


# -- what it must not say ------------------------------------------------------------------------
def hostile(value: Any) -> Any:
    """A value whose texts are all hostile, but for ids of events and constant words."""
    if isinstance(value, Event):
        return msgspec.structs.replace(value, what=HOSTILE, fields={HOSTILE: HOSTILE, "node": HOSTILE})
    if isinstance(value, msgspec.Struct):
        changed = {name: hostile(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **changed)
    if type(value) is str:
        return HOSTILE
    if isinstance(value, tuple):
        return tuple(hostile(each) for each in value)
    if isinstance(value, dict):
        return {(HOSTILE if type(key) is str else key): hostile(each) for key, each in value.items()}
    return value


def test_nothing_that_objects_or_people_say_becomes_markup() -> None:
    breakers = {ACTION: BreakerSummary(until=NOW + 9, why="Denied")}
    pause = Pause(who="Ada", why="a move", since=NOW - 300)
    status = hostile(fleet(summary=summary(breakers=breakers, pause=pause, read_failure="why")))
    pages = Pages(Links("", "", HOSTILE))
    evil = Query(prefix=HOSTILE)
    for html in (
        pages.fleet(status, [hostile(EVENT)], Query(everything=True)),
        pages.fleet(status, [hostile(EVENT)], evil),
        pages.fleet(fleet(), [], evil),
        pages.node(hostile(ONE), hostile(PLAN)),
        pages.message(HOSTILE, HOSTILE, root="./"),
    ):
        document = Document(html)
        assert not {"img", "script"} & {tag for tag, _ in document.tags}
        assert not [name for _, attributes in document.tags for name in attributes if name.startswith("on")]
        assert HOSTILE in document.said
        assert "49" not in document.said.replace("1970-01-12", "")
        assert not [href for href in document.all("href") if ":" in href]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("see `a <b>`, then `c`", "see <code>a &lt;b&gt;</code>, then <code>c</code>"),
        ("one ` & only", "one ` &amp; only"),
        ("plain", "plain"),
    ],
)
def test_commands_are_set_off_in_sentences(text: str, html: str) -> None:
    assert prose(text) == html


# -- its form ------------------------------------------------------------------------------------
def test_names_within_a_page_are_unique_and_lead_somewhere() -> None:
    for document in everything():
        ids = document.all("id")
        assert len(ids) == len(set(ids))
        inner = [href[1:] for href in document.all("href") if href.startswith("#")]
        assert {*document.all("aria-labelledby"), *inner, *document.all("for")} <= set(ids)
        headings = [int(tag[1]) for tag, _ in document.tags if re.fullmatch(r"h\d", tag)]
        assert headings[0] == 1
        assert all(after - before <= 1 for before, after in itertools.pairwise(headings))


def test_nothing_needs_a_style_attribute_a_script_or_another_server() -> None:
    for document in everything():
        assert document.all("style") == []
        assert {tag for tag, _ in document.tags} & {"style", "script", "iframe", "img"} == set()
        assert [attributes["href"] for tag, attributes in document.tags if tag == "link"] in (
            ["./style.css"],
            ["../style.css"],
        )
    assert b"url(" not in STYLE
    assert b"@import" not in STYLE


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(scheme: str) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1 for text; 1.4.11: 3 to 1 for what must be seen beside it."""
    light, dark = (
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))
        for block in re.findall(r":root \{(.*?)\}", STYLE.decode(), re.DOTALL)
    )
    colours = light if scheme == "light" else light | dark

    def contrast(one: str, other: str) -> float:
        low, high = sorted(luminance(colours[name]) for name in (one, other))
        return (high + 0.05) / (low + 0.05)

    texts = [(ink, ground) for ink in ("ink", "muted", "link", "bad") for ground in ("ground", "surface")]
    texts += [(tone, f"{tone}-soft") for tone in ("good", "warn", "bad")] + [("muted", "plain-soft")]
    assert {pair: contrast(*pair) for pair in texts if contrast(*pair) < 4.5} == {}
    shapes = [("used", "surface"), ("used", "free"), ("held", "surface"), ("lack", "surface"), ("muted", "surface")]
    assert {pair: contrast(*pair) for pair in shapes if contrast(*pair) < (1.5 if pair[1] == "free" else 2.5)} == {}


def test_the_kinds_of_work_are_all_drawn() -> None:
    assert all(kind.value in shown().words for kind in WorkKind)
