"""What EC2 would let us do, asked without doing it; a right that is taken away is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from contract.ec2_adapters import TAGS, Adapter, create

from eni_tasks.adapters.ec2.client import ClientOptions
from eni_tasks.adapters.ec2.dry_run import NOT_AN_INTERFACE, Ec2DryRuns
from eni_tasks.model.ec2_actions import MUTATIONS, READS
from eni_tasks.ports.doctor import Right, Sample
from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.services.doctor.ec2_checks import examine_ec2
from eni_tasks.services.doctor.findings import Finding, Verdict
from eni_tasks.settings import Settings

if TYPE_CHECKING:
    from contract.ec2_servers import Sandbox

ACTIONS = tuple(action.name for action in (*READS, *MUTATIONS) if not action.setting)
DELETE = "DeleteNetworkInterface"
EVERYTHING = Settings(instance_tags={"served": "yes"}, release_excess=True, ipv6=True, static_addresses=True)


@pytest.fixture
def rights(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> Ec2DryRuns:
    Adapter(monkeypatch, sandbox.server.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sandbox.server.url)
    return Ec2DryRuns(ClientOptions(read_attempts=1))


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> Sample:
    """An interface of ours on an instance."""
    ec2 = Adapter(monkeypatch, sandbox.server.url).on()
    instance = sandbox.control.launch_instance("m5.large", sandbox.built.node_subnets["a"])
    interface = create(ec2, sandbox)
    attachment = ec2.attach_interface(interface.id, instance.id, device_index=1, network_card=0)
    sandbox.control.reset_calls()
    return Sample(
        tags=TAGS,
        subnet_id=interface.subnet_id,
        security_groups=interface.security_groups,
        instance_id=instance.id,
        interface_id=interface.id,
        attachment_id=attachment,
    )


def troubles(findings: list[Finding]) -> list[str]:
    return [finding.what for finding in findings if finding.verdict is Verdict.TROUBLE]


def test_all_is_allowed_and_nothing_is_done(rights: Ec2DryRuns, sandbox: Sandbox, sample: Sample) -> None:
    before = sandbox.control.view()
    findings = examine_ec2(rights, sample, Settings())
    assert {finding.verdict for finding in findings} == {Verdict.OK}
    assert [finding.what for finding in findings] == ["identity", *(f"ec2:{action}" for action in ACTIONS)]
    assert "arn:aws:iam::" in findings[0].message
    assert sandbox.control.view() == before
    assert not any(call.effect for call in sandbox.control.calls() if call.action != "GetCallerIdentity")


def test_each_right_that_is_taken_away_is_named(rights: Ec2DryRuns, sandbox: Sandbox, sample: Sample) -> None:
    for action in (action.name for action in (*READS, *MUTATIONS) if action.name != DELETE):
        sandbox.control.set_knobs(denied_actions=[action])
        findings = examine_ec2(rights, sample, EVERYTHING)
        assert troubles(findings) == [f"ec2:{action}"]
        (denied,) = [finding for finding in findings if finding.verdict is Verdict.TROUBLE]
        assert "UnauthorizedOperation" in denied.message
        assert f"Allow ec2:{action}" in denied.advice
        assert ("ec2:CreateTags" in denied.advice) == (action == "CreateNetworkInterface")


def test_no_living_interface_is_named_in_a_delete(rights: Ec2DryRuns, sandbox: Sandbox, sample: Sample) -> None:
    assert rights.permission(DELETE, sample).right is Right.ALLOWED
    (call,) = sandbox.control.calls()
    assert call.action == DELETE
    assert sample.interface_id not in str(call)
    assert NOT_AN_INTERFACE in str(call)


@pytest.mark.parametrize(
    ("code", "message", "right"),
    [
        # Without conditions on tags EC2 looks the interface up once the rights are checked.
        ("InvalidNetworkInterfaceID.NotFound", "does not exist", Right.ALLOWED),
        # An interface that does not exist has no tags: a policy that asks for ours denies it, complete or not.
        ("UnauthorizedOperation", "no identity-based policy allows the action", Right.UNKNOWN),
        ("UnauthorizedOperation", "with an explicit deny in a service control policy", Right.DENIED),
        ("InvalidNetworkInterfaceID.Malformed", "Invalid id", Right.UNKNOWN),
    ],
    ids=["not-found", "denied", "denied-explicitly", "another-refusal"],
)
def test_what_the_answer_about_no_interface_says_of_delete(  # noqa: PLR0913 - fixtures and the case
    rights: Ec2DryRuns, sandbox: Sandbox, sample: Sample, code: str, message: str, right: Right
) -> None:
    sandbox.control.add_faults([Fault(action=DELETE, code=code, message=message, times=None)])
    permission = rights.permission(DELETE, sample)
    assert permission.right is right
    assert permission.why.startswith(code if right is not Right.ALLOWED else "")


def test_what_cannot_be_asked_about_is_no_trouble(rights: Ec2DryRuns) -> None:
    findings = examine_ec2(rights, Sample(tags=TAGS), Settings())
    unknown = [finding.what for finding in findings if finding.verdict is Verdict.UNKNOWN]
    assert unknown == [f"ec2:{mutation.name}" for mutation in MUTATIONS if mutation.asked_of]
    assert troubles(findings) == []


def test_throttling_is_no_denial(rights: Ec2DryRuns, sandbox: Sandbox, sample: Sample) -> None:
    sandbox.control.add_faults([Fault(action="AttachNetworkInterface", code="RequestLimitExceeded", times=None)])
    permission = rights.permission("AttachNetworkInterface", sample)
    assert (permission.right, permission.why.partition(":")[0]) == (Right.UNKNOWN, "RequestLimitExceeded")


@pytest.mark.parametrize("code", ["InvalidClientTokenId", "ExpiredToken", "AuthFailure"])
def test_wrong_credentials_are_one_finding(rights: Ec2DryRuns, sandbox: Sandbox, sample: Sample, code: str) -> None:
    sandbox.control.add_faults([Fault(action="*", code=code, times=None)])
    findings = examine_ec2(rights, sample, Settings())
    assert troubles(findings) == ["credentials"]
    assert code in findings[-1].message


def test_no_region_is_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    findings = examine_ec2(Ec2DryRuns(ClientOptions()), Sample(), Settings())
    assert troubles(findings) == ["region"]
    assert "AWS_REGION" in findings[-1].advice


def test_an_absent_ec2_is_one_finding(rights: Ec2DryRuns, monkeypatch: pytest.MonkeyPatch, sample: Sample) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", "http://127.0.0.1:1")
    findings = examine_ec2(rights, sample, Settings())
    assert troubles(findings) == ["reachable"]
    assert "AWS_ENDPOINT_URL" in findings[-1].advice
