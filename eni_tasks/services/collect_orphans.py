"""Interfaces that were left behind: found by their tags, noted, and deleted by a later pass.

EC2 tells no creation time, and an interface that is being created looks like one that was left behind. So nothing
is deleted that a journal names, or that was not seen unattached for the grace period. What this finds is what no
journal knows any more: Redis lost its data, a node was removed together with its journal, or an instance ended
before delete-on-termination was set. The rule is in `domain.orphans`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from eni_tasks.domain import orphans
from eni_tasks.errors import Ec2Error, Ec2Reaction, LeaseLost
from eni_tasks.model.network import Interface, InterfaceId, VpcId, ownership
from eni_tasks.model.work import Claim, Pass
from eni_tasks.observability.logs import logger
from eni_tasks.services.mutate import Mutator, Postponed
from eni_tasks.services.work import Report, Work

DEADLINE_SECONDS = 60.0  # of a pass: it has to end within its claim
PAUSE_SECONDS = 30.0  # at least so long between a pass and the one that it asks for

# Trouble of EC2 or of the account, not of one interface: the others wait, too.
_ACCOUNT_TROUBLE = frozenset({Ec2Reaction.RETRY_LATER, Ec2Reaction.ACCOUNT_WIDE})


class OrphanCollector:
    """Deletes what was left behind.

    Args:
        work: claims passes.
        mutator: makes the calls.
        rule: what is an orphan, and when it may be deleted.
    """

    def __init__(self, work: Work, mutator: Mutator, rule: orphans.Rule) -> None:
        self._state = mutator.state
        self._work = work
        self._ec2 = mutator.ec2
        self._mutator = mutator
        self._rule = rule

    def run(self, *, dry_run: bool = False) -> Report:
        """Make one pass.

        Args:
            dry_run: only say what a pass would do now; nothing is deleted, and nothing noted.

        Returns:
            A report: how many were `found`, which were `deleted`, for how many seconds others are
            `waiting` (0: for the next pass), which were `kept` and why. Or `skipped`, `refused`, `failed` or
            `stopped` with the reason.

        Raises:
            StateUnavailable: Redis did not answer; the lease runs out and the pass is requeued.
            Ec2Error: a dry run could not list the interfaces.
        """
        return self._report_only() if dry_run else self._work.run_pass(Pass.ORPHANS, self._pass)

    def _report_only(self) -> Report:
        rule = self._rule_now()
        if refusal := orphans.refusal(rule):
            return {"refused": refusal}
        unclaimed, kept = self._list(rule)
        verdict = orphans.judge(unclaimed, self._state.orphans.seen(), self._state.orphans.removed(), rule)
        return {
            "dry_run": True,
            "found": len(unclaimed) + len(kept),
            "would_delete": [interface.id for interface in verdict.delete],
            "waiting": _rounded(verdict.waiting),
            "kept": kept,
        }

    def _pass(self, claim: Claim, report: Report) -> float | None:
        try:
            return self._collect(claim, report)
        except Postponed as error:
            report["stopped"] = str(error)
            return PAUSE_SECONDS
        except Ec2Error as error:
            report["failed"] = str(error)
            logger().warning("orphans_not_listed", action=error.action, code=error.code, error=error.message)
            return PAUSE_SECONDS

    def _collect(self, claim: Claim, report: Report) -> float | None:
        """List, note, judge, delete; returns when the next pass is wanted (None: the periodic one will do)."""
        rule = self._rule_now()
        if refusal := orphans.refusal(rule):
            report["refused"] = refusal
            # Before the first read it is only too early; after that an operator has to act.
            (logger().warning if rule.vpc_ids else logger().info)("orphans_refused", reason=refusal)
            return None
        unclaimed, kept = self._list(rule)
        seen_seconds = self._state.orphans.note_unattached(claim, [interface.id for interface in unclaimed])
        if seen_seconds is None:
            raise LeaseLost("the claim on the pass ran out while orphans were listed; another worker continues")
        removed = self._state.orphans.removed()
        for interface in unclaimed:
            if not seen_seconds[interface.id]:
                node_removed = orphans.created_for(interface) in removed
                logger().info("orphan_found", **_named(interface), node_removed=node_removed)
        verdict = orphans.judge(unclaimed, seen_seconds, removed, rule)
        waiting = _rounded(verdict.waiting) | {interface.id: 0.0 for interface in verdict.delete}
        report |= {"found": len(unclaimed) + len(kept), "deleted": [], "waiting": waiting, "kept": kept}
        self._delete_all(claim, verdict.delete, report)
        # A call that was running when a node was removed has ended by then, and shows: a second look.
        looks = [rule.removed_wait_seconds - age for age in removed.values() if age < rule.removed_wait_seconds]
        return max(PAUSE_SECONDS, min([*waiting.values(), *looks])) if waiting or looks else None

    def _rule_now(self) -> orphans.Rule:
        """The rule with the VPCs in which there are nodes, or were until a day ago."""
        return msgspec.structs.replace(self._rule, vpc_ids=frozenset(self._state.network.recent_vpcs()))

    def _list(self, rule: orphans.Rule) -> tuple[list[Interface], dict[InterfaceId, str]]:
        """List our unattached interfaces: those that no journal names, and why the others are kept."""
        listed = self._ec2.unattached_interfaces(ownership(rule.cluster), [VpcId(name) for name in rule.vpc_ids])
        found = orphans.ours(listed, rule)
        # Read after the listing: a journal is written before its interface is created. The journal of a node
        # that was removed is of no use to any worker.
        journals = self._state.nodes.journals() if found else {}
        live = {name: entry for name, entry in journals.items() if self._state.nodes.object(name) is not None}
        claimed = orphans.being_created(found, live)
        kept = {interface_id: f"being created for node {node}" for interface_id, node in claimed.items()}
        return [interface for interface in found if interface.id not in claimed], kept

    def _delete_all(self, claim: Claim, chosen: Iterable[Interface], report: dict[str, Any]) -> None:
        """Delete one after the other; each that was answered leaves the report's `waiting`."""
        ends_at = time.monotonic() + DEADLINE_SECONDS
        for interface in chosen:
            try:
                deleted: bool | None = self._mutator.call(
                    claim, "DeleteNetworkInterface", partial(self._deleted, interface.id), urgent=False
                )
                why = "" if deleted else "it is in use after all"
            except Postponed as error:
                report["stopped"] = str(error)
                return
            except Ec2Error as error:
                if error.reaction in _ACCOUNT_TROUBLE:
                    report["stopped"] = str(error)
                    return
                deleted, why = None, str(error)
            del report["waiting"][interface.id]
            if why and deleted is None:
                # An interface that EC2 keeps refusing is tried in each pass, and doesn't hold up the others.
                self._state.orphans.put_last(interface.id, self._rule.grace_seconds)
                report["kept"][interface.id] = why
            elif why:
                self._state.orphans.forget(interface.id)
                report["kept"][interface.id] = why
            else:
                self._state.orphans.forget(interface.id)
                report["deleted"].append(interface.id)
                self._mutator.counters.count("orphans_deleted_total")
                self._state.events.append("DeleteNetworkInterface", {**_named(interface), "why": "orphan"})
                logger().info("orphan_deleted", **_named(interface))
            if time.monotonic() > ends_at:
                return

    def _deleted(self, interface_id: InterfaceId) -> bool:
        """Delete an interface; False if it was attached meanwhile, which is no trouble."""
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
        "instance": orphans.created_for(interface),
    }


def _rounded(waiting: Mapping[InterfaceId, float]) -> dict[InterfaceId, float]:
    return {interface_id: round(seconds, 1) for interface_id, seconds in waiting.items()}
