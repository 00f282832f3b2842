"""Looking at nodes after their facts were read anew, and marking those that have something to do.

The same planner and the same comparison that a run would use decide here, so that an idle fleet
causes no run at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from eni_tasks.domain import status
from eni_tasks.domain.glance import shows_what_is_gone
from eni_tasks.domain.planner import plan
from eni_tasks.errors import InvalidInput, NodeGone
from eni_tasks.model.network import NodeName
from eni_tasks.model.node import Policy
from eni_tasks.model.plan import Plan, Urgency
from eni_tasks.observability.logs import logger
from eni_tasks.ports.state import Store
from eni_tasks.ports.work import WorkKind
from eni_tasks.services.dispatch import Dispatch
from eni_tasks.services.gather import Gathered, understood


class Review:
    """Marks maintenance where the planner has an action, publishing where the object differs."""

    def __init__(self, store: Store, dispatch: Dispatch, policy: Policy) -> None:
        self._store = store
        self._dispatch = dispatch
        self._policy = policy

    def mark(self, names: Sequence[NodeName]) -> None:
        """Look at nodes whose facts were just entered, and mark the needy, the most urgent first.

        Args:
            names: the nodes.
        """
        maintain: list[tuple[NodeName, Urgency]] = []
        publish: list[tuple[NodeName, Urgency]] = []
        for name, world in zip(names, self._store.gather_all(names), strict=True):
            try:
                gathered = understood(name, world)
            except (NodeGone, InvalidInput) as error:
                logger().info("node_not_reviewed", node=name, reason=str(error))
                continue
            decision = plan(gathered.snapshot, self._policy, gathered.now)
            maintained = (
                decision.action is not None or gathered.journal is not None or _news_of_trouble(gathered, decision)
            )
            if maintained:
                maintain.append((name, decision.urgency))
            # A run ends by comparing: what the object lacks is written together with what comes. What is
            # gone doesn't wait for that, since the run may be in a long back-off.
            if (not maintained or _shown_is_gone(gathered)) and _differs(gathered, self._policy):
                publish.append((name, decision.urgency))
        if maintain:
            self._dispatch.mark(WorkKind.MAINTAIN, sorted(maintain, key=lambda mark: mark[1]))
        if publish:
            self._dispatch.mark(WorkKind.PUBLISH, sorted(publish, key=lambda mark: mark[1]))


def _news_of_trouble(gathered: Gathered, decision: Plan) -> bool:
    """Say whether a run would tell of a trouble that nobody was told of yet, or that one is over."""
    trouble = decision.explanation[-1] if decision.blocked else ""
    return gathered.snapshot.interfaces is not None and trouble != gathered.snapshot.memory.trouble


def _differs(gathered: Gathered, policy: Policy) -> bool:
    known = gathered.snapshot.interfaces is not None
    return known and any(status.writes(gathered.obj, gathered.snapshot, policy))


def _shown_is_gone(gathered: Gathered) -> bool:
    interfaces = gathered.snapshot.interfaces
    return interfaces is not None and shows_what_is_gone(gathered.snapshot.node, interfaces)
