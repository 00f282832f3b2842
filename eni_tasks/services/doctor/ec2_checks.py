"""AWS: who we are there, and whether each EC2 action that we call is permitted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.errors import Ec2Error, Ec2Reaction, InvalidInput
from eni_tasks.model.ec2_actions import MUTATIONS, READS, TAGGED_BY, TAGGING_ACTION
from eni_tasks.model.network import InterfaceId
from eni_tasks.model.node import Node, Policy
from eni_tasks.ports.doctor import Ec2Rights, Permission, Right, Sample
from eni_tasks.services.doctor.findings import Area, Finding
from eni_tasks.settings import Settings
from eni_tasks.state import State

TAGGING = f" and ec2:{TAGGING_ACTION} (the call that creates an interface also tags it)"
INSTANCES_LOOKED_AT = 1000


def examine_ec2(rights: Ec2Rights, sample: Sample, settings: Settings) -> list[Finding]:
    """Ask AWS.

    Args:
        rights: who answers.
        sample: real resources to ask about.
        settings: some take further rights.
    """
    area = Area("aws")
    try:
        _identity(area, rights)
        for action in (*READS, *MUTATIONS):
            if not action.setting or getattr(settings, action.setting):
                _right(area, rights.permission(action.name, sample))
    except InvalidInput as error:
        area.trouble("region", f"{str(error).rstrip('.')}.", "Set AWS_REGION to the region of the nodes.")
    except Ec2Error as error:
        _no_call(area, error)
    return area.findings


def _no_call(area: Area, error: Ec2Error) -> None:
    if error.reaction is Ec2Reaction.ACCOUNT_WIDE:
        what, do = "credentials", "the pod's role (IRSA, Pod Identity), or the credentials in the environment"
    else:
        what, do = "reachable", "AWS_REGION, AWS_ENDPOINT_URL, the proxy and the network"
    area.trouble(what, f"EC2 can't be called: {error.code}: {error.message.rstrip('.')}.", f"Check {do}.")


def _identity(area: Area, rights: Ec2Rights) -> None:
    try:
        area.ok("identity", f"We are {rights.identity()}.")
    except Ec2Error as error:
        # Only shown to people: a cluster that can't reach STS works as well.
        area.unknown(
            "identity",
            f"STS did not tell who we are: {error.code}: {error.message.rstrip('.')}.",
            "Nothing, if EC2 answers.",
        )


def _right(area: Area, permission: Permission) -> None:
    action = permission.action
    what = f"ec2:{action}"
    if permission.right is Right.ALLOWED:
        area.ok(what, "Allowed.")
    elif permission.right is Right.DENIED:
        also = TAGGING if action == TAGGED_BY else ""
        area.trouble(what, f"Denied: {permission.why}", f"Allow {what}{also} to our role; see the chart's IAM policy.")
    else:
        do = "Ask again when the fleet has an interface of ours, or compare our role with the chart's IAM policy."
        area.unknown(what, f"{permission.why.rstrip('.')}.", do)


def sample_of(state: State, policy: Policy) -> Sample:
    """Find real resources that rights can be checked on: an interface of ours, else any of a node.

    Args:
        state: where the facts are.
        policy: for the tags of our interfaces.
    """
    served = (node.instance_id for node in _nodes(state) if node.instance_id)
    instances = list(islice(served, INSTANCES_LOOKED_AT))
    facts = state.facts.get(instances)
    interfaces = [each for known in facts.values() for each in known.interfaces]
    if not interfaces:
        return Sample(tags=policy.interface_tags)
    ours = policy.interface_tags.items()
    mine = next((each for each in interfaces if each.attachment_id and ours <= each.tags.items()), None)
    shown = mine or interfaces[0]
    return Sample(
        tags=policy.interface_tags,
        subnet_id=shown.subnet_id,
        security_groups=shown.security_groups,
        instance_id=shown.instance_id,
        interface_id=mine.id if mine else InterfaceId(""),
        attachment_id=mine.attachment_id if mine else "",
    )


def _nodes(state: State) -> Iterator[Node]:
    for obj in state.nodes.all_objects():
        try:
            yield parse_node(obj)
        except InvalidInput:
            continue  # `status` reports it
