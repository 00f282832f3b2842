"""Write the chart's IAM policy from eni_tasks/model/ec2_actions.py: `make docs`. A test fails when it is due."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eni_tasks.model.ec2_actions import INTERFACE, MUTATIONS, READS, TAGGED_BY, TAGGING_ACTION, Scope
from eni_tasks.model.network import ownership

FILE = Path(__file__).parents[1] / "helm" / "eni-tasks" / "files" / "iam-policy.json"
# To be replaced by the value of `settings.cluster`: a policy without it would let one cluster change another's.
CLUSTER = "CLUSTER-NAME"


def policy() -> dict[str, Any]:
    """The policy document: statements of reads, and of mutations by resource type and condition.

    What only a setting makes necessary has statements of its own, named after the setting: `With…`.
    """
    statements = [
        _statement(f"Read{_with(setting)}", [read.name for read in READS if read.setting == setting], "*", {})
        for setting in dict.fromkeys(read.setting for read in READS)
    ]
    statements += [
        _statement(_sid(kind, scope) + _with(setting), actions, f"arn:aws:ec2:*:*:{kind}/*", _condition(scope))
        for (setting, kind, scope), actions in _grouped().items()
    ]
    condition = {"ec2:CreateAction": TAGGED_BY}
    statements.append(_statement("TagNewInterfaces", [TAGGING_ACTION], f"arn:aws:ec2:*:*:{INTERFACE}/*", condition))
    return {"Version": "2012-10-17", "Statement": statements}


def current() -> str:
    """The file as it must be."""
    return json.dumps(policy(), indent=2) + "\n"


def _grouped() -> dict[tuple[str, str, Scope], list[str]]:
    """Setting, resource type and scope → the actions that may touch such resources."""
    found: dict[tuple[str, str, Scope], list[str]] = {}
    for mutation in MUTATIONS:
        for kind, scope in mutation.touches.items():
            found.setdefault((mutation.setting, kind, scope), []).append(mutation.name)
    return found


def _with(setting: str) -> str:
    return f"With{''.join(word.capitalize() for word in setting.split('_'))}" if setting else ""


def _sid(kind: str, scope: Scope) -> str:
    words = [scope.value, *kind.split("-")]
    return "".join(word.capitalize() for word in words)


def _condition(scope: Scope) -> dict[str, str]:
    keys = {Scope.OURS: "aws:ResourceTag", Scope.NEW: "aws:RequestTag"}
    if scope not in keys:
        return {}
    return {f"{keys[scope]}/{tag}": value for tag, value in ownership(CLUSTER).items()}


def _statement(sid: str, actions: list[str], resource: str, condition: dict[str, str]) -> dict[str, Any]:
    named: dict[str, Any] = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": [f"ec2:{action}" for action in sorted(actions)],
        "Resource": resource,
    }
    return named | ({"Condition": {"StringEquals": condition}} if condition else {})


if __name__ == "__main__":
    FILE.write_text(current())
