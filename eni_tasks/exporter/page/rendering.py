"""From what the pages show to HTML. Everything that comes from objects, from EC2 or from people is escaped."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from eni_tasks.exporter.page import views
from eni_tasks.exporter.page.links import Links
from eni_tasks.services import sentences
from eni_tasks.services.status import FleetStatus, NodeDetails, NodePlan
from eni_tasks.state.events import Event

STYLE = (resources.files(__package__) / "templates" / "style.css").read_bytes()
REFRESH_SECONDS = 10
SUBNETS_SHOWN = 40


class Pages:
    """Renders the pages.

    Args:
        links: where they lead.
    """

    def __init__(self, links: Links) -> None:
        self._templates = Environment(
            loader=PackageLoader(__package__ or ""),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {"links": links, "sentences": sentences, "views": views}
        self._templates.filters |= {"duration": sentences.duration, "clock": clock, "count": count, "prose": prose}

    def fleet(self, fleet: FleetStatus, events: list[Event], query: views.Query) -> str:
        """The fleet at a glance.

        Args:
            fleet: its status.
            events: the latest, oldest first.
            query: which nodes are listed.
        """
        return self._render(
            "fleet.html",
            root="./",
            now=fleet.summary.now,
            fleet=fleet,
            summary=fleet.summary,
            totals=views.totals(fleet),
            notices=[*sentences.notices(fleet.summary), *sentences.slowdowns(fleet.summary)],
            listed=views.node_list(fleet, query),
            query=query,
            events=events[::-1],
            refresh_seconds=REFRESH_SECONDS if query.refresh else 0,
            subnets_shown=SUBNETS_SHOWN,
        )

    def node(self, details: NodeDetails, plan: NodePlan | None) -> str:
        """One node.

        Args:
            details: all that is known of it.
            plan: what would be done next; None if its object can't be understood.
        """
        return self._render("node.html", root="../", now=details.now, details=details, status=details.status, plan=plan)

    def message(self, title: str, *paragraphs: str, root: str) -> str:
        """A page that only says something.

        Args:
            title: in a few words.
            paragraphs: in sentences.
            root: the way to the fleet's page.
        """
        return self._render("message.html", now=None, title=title, paragraphs=paragraphs, root=root)

    def _render(self, template: str, **values: object) -> str:
        return self._templates.get_template(template).render({"refresh_seconds": 0, **values})


def clock(seconds: float) -> str:
    """A time of Redis, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def count(number: int) -> str:
    """A number with separators."""
    return f"{number:,}"


def prose(text: str) -> Markup:
    """A sentence, in which commands stand between backticks."""
    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:  # a backtick too many: it is one
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(each) if n % 2 else each for n, each in enumerate(parts))
