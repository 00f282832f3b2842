"""Interfaces that were left behind: found by their tags, remembered, and deleted by a later pass.

The safety net under the saga, for what no journal knows any more: Redis was emptied, a node went
together with its journal, an instance ended before its interface was marked. What an orphan is, and when
it may go, is decided in `domain.orphans`. Passes are periodic; one comes sooner where a node was
removed or an interface is waiting.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from eni_tasks.domain import orphans
from eni_tasks.domain.tags import ownership
from eni_tasks.errors import Ec2Error, Ec2Reaction, LeaseLost
from eni_tasks.model.network import Interface, InterfaceId, VpcId
from eni_tasks.observability.logs import logger
from eni_tasks.observability.meter import Meter
from eni_tasks.ports.ec2 import Ec2
from eni_tasks.ports.orphans import OrphanMemory
from eni_tasks.ports.state import Store
from eni_tasks.ports.work import Claim, Work, WorkKind
from eni_tasks.services.dispatch import ORPHANS, Dispatch
from eni_tasks.services.keeper import Keeper
from eni_tasks.services.mutating import Mutator, Postponed

DEADLINE_SECONDS = 60.0  # of a pass: a claim isn't for ever
PAUSE_SECONDS = 30.0  # at least so long between a pass and the one that it asks for

# Trouble of EC2 or of the account, not of the interface at hand: the others wait with it.
_EVERYBODYS = frozenset({Ec2Reaction.RETRY_LATER, Ec2Reaction.ACCOUNT_WIDE})


class Orphans:
    """Collects what was left behind."""

    def __init__(  # noqa: PLR0913 - the joint hands in every part once
        self,
        store: Store,
        memory: OrphanMemory,
        work: Work,
        dispatch: Dispatch,
        keeper: Keeper,
        ec2: Ec2,
        mutator: Mutator,
        meter: Meter,
        rule: orphans.Rule,
    ) -> None:
        self._store = store
        self._memory = memory
        self._work = work
        self._dispatch = dispatch
        self._keeper = keeper
        self._ec2 = ec2
        self._mutator = mutator
        self._meter = meter
        self._rule = rule

    def run(self, *, dry_run: bool = False) -> dict[str, Any]:
        """Make one pass.

        Args:
            dry_run: only say what a pass would do now; nothing is deleted, and nothing remembered.

        Returns:
            A report: how many were `found`, which were `deleted`, for how many seconds others are
            `waiting` (0: for the next pass), which were `kept` and why. Or `skipped`, `refused`, `failed` or
            `stopped` with the reason.

        Raises:
            StateUnavailable: Redis did not answer; the lease runs out and the pass is swept.
            Ec2Error: a dry run could not list the interfaces.
        """
        if dry_run:
            return self._rehearse()
        claim = self._work.claim(WorkKind.REFRESH, ORPHANS)
        if claim is None:
            return {"skipped": "another worker is collecting already"}
        report: dict[str, Any] = {}
        again: float | None = None
        with self._keeper.hold(claim):
            try:
                again = self._pass(claim, report)
            except Ec2Error as error:
                again = PAUSE_SECONDS
                report["failed"] = str(error)
                logger().warning("orphans_not_listed", action=error.action, code=error.code, error=error.message)
            except LeaseLost as error:
                report["stopped"] = str(error)
                logger().warning("claim_lost", error=str(error))
        self._dispatch.finish(claim, again_after_seconds=again)
        return report

    def _rehearse(self) -> dict[str, Any]:
        rule = self._rule_now()
        if refusal := orphans.refusal(rule):
            return {"refused": refusal}
        unclaimed, kept = self._look(rule)
        verdict = orphans.judge(unclaimed, self._memory.seen(), self._memory.removed(), rule)
        return {
            "dry_run": True,
            "found": len(unclaimed) + len(kept),
            "would_delete": [interface.id for interface in verdict.delete],
            "waiting": _rounded(verdict.waiting),
            "kept": kept,
        }

    def _pass(self, claim: Claim, report: dict[str, Any]) -> float | None:
        """Look, note, judge, delete; returns when the next pass is wanted (None: the periodic one will do)."""
        rule = self._rule_now()
        if refusal := orphans.refusal(rule):
            report["refused"] = refusal
            # Before the first read it is only too early; after that somebody has to do something.
            (logger().warning if rule.vpc_ids else logger().info)("orphans_refused", reason=refusal)
            return None
        unclaimed, kept = self._look(rule)
        seen_seconds = self._memory.note(claim, [interface.id for interface in unclaimed])
        if seen_seconds is None:
            raise LeaseLost("the claim on the orphans ran out while they were listed; another worker goes on")
        removed = self._memory.removed()
        for interface in unclaimed:
            if not seen_seconds[interface.id]:
                logger().info("orphan_found", **_named(interface), node_removed=orphans.made_for(interface) in removed)
        verdict = orphans.judge(unclaimed, seen_seconds, removed, rule)
        waiting = _rounded(verdict.waiting) | {interface.id: 0.0 for interface in verdict.delete}
        report |= {"found": len(unclaimed) + len(kept), "deleted": [], "waiting": waiting, "kept": kept}
        self._delete_all(claim, verdict.delete, report)
        # A call that was under way when a node went has ended by then, and shows: a second look.
        looks = [rule.removed_wait_seconds - age for age in removed.values() if age < rule.removed_wait_seconds]
        return max(PAUSE_SECONDS, min([*waiting.values(), *looks])) if waiting or looks else None

    def _rule_now(self) -> orphans.Rule:
        """The rule with the VPCs of the nodes as last read."""
        known = self._store.infrastructure()
        return msgspec.structs.replace(self._rule, vpc_ids=frozenset(known.vpcs if known else ()))

    def _look(self, rule: orphans.Rule) -> tuple[list[Interface], dict[InterfaceId, str]]:
        """List our unattached interfaces: those that nobody claims, and why the others are kept."""
        listed = self._ec2.unattached_interfaces(ownership(rule.cluster), [VpcId(name) for name in rule.vpc_ids])
        found = orphans.ours(listed, rule)
        # Read after the listing: a journal is written before its interface is made. One whose node is
        # gone is nobody's any more.
        journals = self._store.journals() if found else {}
        live = {name: entry for name, entry in journals.items() if self._store.node(name) is not None}
        claimed = orphans.in_the_making(found, live)
        kept = {interface_id: f"in the making for node {node}" for interface_id, node in claimed.items()}
        return [interface for interface in found if interface.id not in claimed], kept

    def _delete_all(self, claim: Claim, chosen: Iterable[Interface], report: dict[str, Any]) -> None:
        """Delete one after the other; whatever was answered leaves the report's `waiting`."""
        ends_at = time.monotonic() + DEADLINE_SECONDS
        for interface in chosen:
            try:
                deleted = self._mutator.call(
                    claim, "DeleteNetworkInterface", partial(self._deleted, interface.id), urgent=False
                )
                why = "" if deleted else "it is in use after all"
            except Postponed as error:
                report["stopped"] = str(error)
                return
            except Ec2Error as error:
                if error.reaction in _EVERYBODYS:
                    report["stopped"] = str(error)
                    return
                why = str(error)
            # Should it be seen again, then for the first time: nobody stands in the others' way for ever.
            self._memory.forget(interface.id)
            del report["waiting"][interface.id]
            if why:
                report["kept"][interface.id] = why
            else:
                report["deleted"].append(interface.id)
                self._meter.count("orphans_deleted_total")
                self._store.event("DeleteNetworkInterface", {**_named(interface), "why": "orphan"})
                logger().info("orphan_deleted", **_named(interface))
            if time.monotonic() > ends_at:
                return

    def _deleted(self, interface_id: InterfaceId) -> bool:
        """Delete an interface; False if somebody attached it meanwhile, which is no trouble of anybody's."""
        try:
            self._ec2.delete_interface(interface_id)
        except Ec2Error as error:
            if error.reaction is not Ec2Reaction.STALE_VIEW:
                raise
            return False
        return True


def _named(interface: Interface) -> dict[str, str]:
    return {
        "interface": interface.id,
        "subnet": interface.subnet_id,
        "instance": orphans.made_for(interface),
    }


def _rounded(waiting: Mapping[InterfaceId, float]) -> dict[InterfaceId, float]:
    return {interface_id: round(seconds, 1) for interface_id, seconds in waiting.items()}
