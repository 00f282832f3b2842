"""The error table, row by row: EC2's codes and texts, and what can go wrong on the way."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from botocore import exceptions
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from eni_tasks.adapters.ec2.errors import REACTIONS, is_throttle, reaction_to, translate
from eni_tasks.errors import Ec2Reaction

TABLE = [
    # code, text, reaction
    ("RequestLimitExceeded", "Request limit exceeded.", "RETRY_LATER"),
    ("EC2ThrottledException", "", "RETRY_LATER"),
    ("Unavailable", "The server is overloaded and can't handle the request.", "RETRY_LATER"),
    ("RequestTimeout", "Your socket connection was not written to within the timeout.", "RETRY_LATER"),
    ("ConcurrentTagAccess", "", "RETRY_LATER"),
    ("InternalError", "An internal error has occurred.", "AMBIGUOUS"),
    ("InternalFailure", "", "AMBIGUOUS"),
    ("ServerInternal", "", "AMBIGUOUS"),
    ("ServiceUnavailable", "", "AMBIGUOUS"),
    ("InsufficientFreeAddressesInSubnet", "The specified subnet does not have enough free addresses", "SUBNET_FULL"),
    ("InsufficientCidrBlocks", "The specified subnet does not have enough free cidr blocks", "NO_PREFIX"),
    ("InvalidParameterValue", "There aren't sufficient free Ipv4 addresses or prefixes", "NO_PREFIX"),
    ("InvalidParameterValue", "There aren't sufficient free Ipv4 addresses", "SUBNET_FULL"),
    ("PrivateIpAddressLimitExceeded", "Number of private addresses will exceed limit.", "INTERFACE_FULL"),
    ("AttachmentLimitExceeded", "Interface count 4 exceeds the limit for t3.medium", "INSTANCE_FULL"),
    ("InvalidInterface.IpAddressLimitExceeded", "Address count 7 on interface-1 exceeds the limit", "INSTANCE_FULL"),
    (
        "InvalidParameterValue",
        "Instance 'i-1' already has an interface attached at device index '1'.",
        "STALE_VIEW",
    ),
    ("InvalidParameterValue", "Network interface 'eni-1' is currently in use.", "STALE_VIEW"),
    ("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID 'eni-1' does not exist", "STALE_VIEW"),
    ("InvalidAttachmentID.NotFound", "", "STALE_VIEW"),
    ("InvalidNetworkInterface.InUse", "", "STALE_VIEW"),
    ("Resource.AlreadyAssigned", "", "STALE_VIEW"),
    ("InvalidIPAddress.InUse", "", "STALE_VIEW"),
    ("InvalidSubnetID.NotFound", "", "STALE_VIEW"),
    ("InvalidSecurityGroupID.NotFound", "", "STALE_VIEW"),
    ("InvalidPaginationToken", "", "STALE_VIEW"),
    ("InvalidNextToken", "", "STALE_VIEW"),
    ("IncorrectState", "The attachment is detaching.", "STALE_VIEW"),
    ("IncorrectState", "Instance 'i-1' is not 'running'.", "NOT_RUNNING"),
    ("IncorrectInstanceState", "", "NOT_RUNNING"),
    ("InvalidInstanceID.NotFound", "The instance ID 'i-1' does not exist", "NODE_OVER"),
    ("InvalidInstanceID.Malformed", 'Invalid id: "1"', "NODE_OVER"),
    ("UnsupportedOperation", "", "NODE_OVER"),
    ("NetworkInterfaceLimitExceeded", "", "ACCOUNT_WIDE"),
    ("NetworkAddressUsageLimitExceeded", "", "ACCOUNT_WIDE"),
    ("NetworkAddressUsagePeeredLimitExceeded", "", "ACCOUNT_WIDE"),
    ("UnauthorizedOperation", "You are not authorized to perform this operation.", "ACCOUNT_WIDE"),
    ("AuthFailure", "", "ACCOUNT_WIDE"),
    ("InvalidClientTokenId", "", "ACCOUNT_WIDE"),
    ("SignatureDoesNotMatch", "", "ACCOUNT_WIDE"),
    ("RequestExpired", "Request has expired.", "ACCOUNT_WIDE"),
    ("OptInRequired", "", "ACCOUNT_WIDE"),
    ("Blocked", "", "ACCOUNT_WIDE"),
    ("PendingVerification", "", "ACCOUNT_WIDE"),
    ("TagPolicyViolation", "", "ACCOUNT_WIDE"),
    ("TagLimitExceeded", "", "ACCOUNT_WIDE"),
    ("SecurityGroupsPerInterfaceLimitExceeded", "", "OUR_FAULT"),
    ("OperationNotPermitted", "", "OUR_FAULT"),
    ("IdempotentParameterMismatch", "", "OUR_FAULT"),
    ("MissingParameter", "", "OUR_FAULT"),
    ("UnknownParameter", "", "OUR_FAULT"),
    ("InvalidParameterCombination", "", "OUR_FAULT"),
    ("FilterLimitExceeded", "", "OUR_FAULT"),
    ("InvalidParameterValue", "Value (banana) for parameter deviceIndex is invalid.", "OUR_FAULT"),
    ("SomethingNewIn2031", "", "OUR_FAULT"),
]
IDS = [f"{code}-{text[:24]}" if text else code for code, text, _ in TABLE]


@pytest.mark.parametrize("prefix", ["", "Client.", "Server."], ids=["bare", "client", "server"])
@pytest.mark.parametrize(("code", "text", "reaction"), TABLE, ids=IDS)
def test_a_refused_mutation_has_the_reaction_of_the_table(prefix: str, code: str, text: str, reaction: str) -> None:
    assert reaction_to(prefix + code, text) is Ec2Reaction[reaction]


def test_no_code_stands_twice_in_the_table() -> None:
    for one, other in itertools.combinations(REACTIONS.values(), 2):
        assert not one & other


@pytest.mark.parametrize("code", ["InternalError", "ServiceUnavailable", "503", "SomethingNewIn2031"])
def test_a_server_fault_is_ambiguous_only_if_something_may_have_changed(code: str) -> None:
    assert reaction_to(code, "", status=503, mutation=True) is Ec2Reaction.AMBIGUOUS
    assert reaction_to(code, "", status=503, mutation=False) is Ec2Reaction.RETRY_LATER


def test_throttling_is_clear_although_its_status_is_a_server_fault() -> None:
    assert reaction_to("RequestLimitExceeded", "", status=503, mutation=True) is Ec2Reaction.RETRY_LATER


@pytest.mark.parametrize(
    ("code", "throttle"),
    [("RequestLimitExceeded", True), ("Client.RequestLimitExceeded", True), ("InternalError", False)],
)
def test_throttling_is_recognised(code: str, throttle: bool) -> None:  # noqa: FBT001 - a table's column
    assert is_throttle(code) is throttle


def refused(code: str, message: str = "", status: int = 400, operation: str = "AttachNetworkInterface") -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, operation)


def test_a_refusal_keeps_code_and_text_and_names_the_action() -> None:
    error = translate(
        "AttachNetworkInterface", refused("Client.AttachmentLimitExceeded", "Interface count 4"), mutation=True
    )
    assert (error.action, error.code, error.message) == (
        "AttachNetworkInterface",
        "AttachmentLimitExceeded",
        "Interface count 4",
    )
    assert str(error) == "AttachNetworkInterface: AttachmentLimitExceeded: Interface count 4"
    assert not error.throttled
    assert not error.index_taken


def test_throttling_and_a_taken_index_are_marked() -> None:
    throttled = translate("AttachNetworkInterface", refused("RequestLimitExceeded", status=503), mutation=True)
    assert throttled.throttled
    text = "Instance 'i-1' already has an interface attached at device index '1'."
    taken = translate("AttachNetworkInterface", refused("InvalidParameterValue", text), mutation=True)
    assert taken.index_taken


@pytest.mark.parametrize(
    ("code", "status", "reaction"),
    [
        ("AccessDenied", 403, Ec2Reaction.ACCOUNT_WIDE),
        ("InvalidIdentityToken", 400, Ec2Reaction.ACCOUNT_WIDE),
        ("Throttling", 400, Ec2Reaction.RETRY_LATER),
        ("InternalFailure", 500, Ec2Reaction.RETRY_LATER),
    ],
)
def test_a_role_that_sts_does_not_give_was_no_mutation(code: str, status: int, reaction: Ec2Reaction) -> None:
    refusal = refused(code, "no", status, operation="AssumeRoleWithWebIdentity")
    error = translate("AssignPrivateIpAddresses", refusal, mutation=True)
    assert error.reaction is reaction
    assert not error.throttled
    assert "AssumeRoleWithWebIdentity" in error.message


AT = {"endpoint_url": "http://127.0.0.1"}
ON_THE_WAY: list[tuple[Exception, str, str]] = [
    # error, after a read, after a mutation
    (exceptions.EndpointConnectionError(error="refused", **AT), "RETRY_LATER", "RETRY_LATER"),
    (exceptions.ConnectTimeoutError(error="slow", **AT), "RETRY_LATER", "RETRY_LATER"),
    (exceptions.ProxyConnectionError(proxy_url="http://127.0.0.1"), "RETRY_LATER", "RETRY_LATER"),
    (exceptions.ReadTimeoutError(error="slow", **AT), "RETRY_LATER", "AMBIGUOUS"),
    (exceptions.ConnectionClosedError(error="reset", **AT), "RETRY_LATER", "AMBIGUOUS"),
    (exceptions.SSLError(error="bad record", **AT), "RETRY_LATER", "AMBIGUOUS"),
    (exceptions.HTTPClientError(error="odd"), "RETRY_LATER", "AMBIGUOUS"),
    (exceptions.ResponseStreamingError(error="cut"), "RETRY_LATER", "AMBIGUOUS"),
    (ResponseParserError("no XML"), "RETRY_LATER", "AMBIGUOUS"),
    (exceptions.NoCredentialsError(), "ACCOUNT_WIDE", "ACCOUNT_WIDE"),
    (exceptions.PartialCredentialsError(provider="env", cred_var="x"), "ACCOUNT_WIDE", "ACCOUNT_WIDE"),
    (exceptions.CredentialRetrievalError(provider="pod", error_msg="no"), "ACCOUNT_WIDE", "ACCOUNT_WIDE"),
    (exceptions.TokenRetrievalError(provider="sso", error_msg="no"), "ACCOUNT_WIDE", "ACCOUNT_WIDE"),
    (exceptions.UnauthorizedSSOTokenError(), "ACCOUNT_WIDE", "ACCOUNT_WIDE"),
    (exceptions.ProfileNotFound(profile="x"), "ACCOUNT_WIDE", "ACCOUNT_WIDE"),
    (FileNotFoundError("no token file"), "ACCOUNT_WIDE", "ACCOUNT_WIDE"),
    (exceptions.ParamValidationError(report="count is text"), "OUR_FAULT", "OUR_FAULT"),
]


@pytest.mark.parametrize(
    ("error", "read", "mutation"), ON_THE_WAY, ids=[type(error).__name__ for error, _, _ in ON_THE_WAY]
)
def test_what_goes_wrong_on_the_way(error: Exception, read: str, mutation: str) -> None:
    assert translate("DescribeVpcs", error, mutation=False).reaction is Ec2Reaction[read]
    translated = translate("AssignPrivateIpAddresses", error, mutation=True)
    assert translated.reaction is Ec2Reaction[mutation]
    assert translated.code == type(error).__name__
