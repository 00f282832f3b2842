"""The one table that sorts EC2's refusals, and errors of the transport, by what to do next.

Sources: the page "Error codes" of the EC2 API, and texts seen in public reports where the code alone
(InvalidParameterValue, IncorrectState) is ambiguous. The services act on a reaction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoAuthTokenError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    ProxyConnectionError,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError

from eni_tasks.errors import Ec2Error, Ec2Reaction

THROTTLES = frozenset(
    {"RequestLimitExceeded", "EC2ThrottledException", "Throttling", "ThrottlingException", "RequestThrottled"}
)

# EC2 failed while it worked on the request: a mutation may or may not have happened.
FAULTS = frozenset({"InternalError", "InternalFailure", "ServerInternal", "ServiceUnavailable"})

REACTIONS: dict[Ec2Reaction, frozenset[str]] = {
    # Refused before any work: throttled, overloaded, the request never arrived whole, tags busy.
    Ec2Reaction.RETRY_LATER: THROTTLES | {"Unavailable", "RequestTimeout", "ConcurrentTagAccess"},
    Ec2Reaction.SUBNET_FULL: frozenset({"InsufficientFreeAddressesInSubnet"}),
    # A block must be aligned, so a subnet with many free addresses may have none.
    Ec2Reaction.NO_PREFIX: frozenset({"InsufficientCidrBlocks"}),
    Ec2Reaction.INTERFACE_FULL: frozenset({"PrivateIpAddressLimitExceeded"}),
    Ec2Reaction.INSTANCE_FULL: frozenset({"AttachmentLimitExceeded", "InvalidInterface.IpAddressLimitExceeded"}),
    Ec2Reaction.STALE_VIEW: frozenset(
        {
            "IncorrectState",
            "InvalidAddress.NotFound",
            "InvalidAllocationID.NotFound",
            "InvalidAttachment.NotFound",
            "InvalidAttachmentID.NotFound",
            "InvalidGroup.NotFound",
            "InvalidIPAddress.InUse",
            "InvalidNetworkInterface.InUse",
            "InvalidNetworkInterfaceID.NotFound",
            "InvalidNextToken",
            "InvalidPaginationToken",
            "InvalidSecurityGroupID.NotFound",
            "InvalidSubnetID.NotFound",
            "InvalidVpcID.NotFound",
            "Resource.AlreadyAssigned",
            "Resource.AlreadyAssociated",
        }
    ),
    Ec2Reaction.NOT_RUNNING: frozenset({"IncorrectInstanceState"}),
    Ec2Reaction.NODE_OVER: frozenset(
        {"InvalidInstanceID.Malformed", "InvalidInstanceID.NotFound", "UnsupportedOperation"}
    ),
    Ec2Reaction.ACCOUNT_WIDE: frozenset(
        {
            "AccessDenied",
            "AccessDeniedException",
            "AuthFailure",
            "Blocked",
            "ExpiredToken",
            "ExpiredTokenException",
            "InvalidClientTokenId",
            "NetworkAddressUsageLimitExceeded",
            "NetworkAddressUsagePeeredLimitExceeded",
            "NetworkInterfaceLimitExceeded",
            "OptInRequired",
            "PendingVerification",
            "RequestExpired",
            "SignatureDoesNotMatch",
            "TagLimitExceeded",
            "TagPolicyViolation",
            "UnauthorizedOperation",
            "UnrecognizedClientException",
        }
    ),
    # The list of groups is the node's own, so this quota must not stop the other nodes' creations.
    Ec2Reaction.OUR_FAULT: frozenset(
        {
            "FilterLimitExceeded",
            "IdempotentParameterMismatch",
            "InvalidParameterCombination",
            "MissingParameter",
            "OperationNotPermitted",
            "SecurityGroupsPerInterfaceLimitExceeded",
            "UnknownParameter",
        }
    ),
}

_BY_CODE = {code: reaction for reaction, codes in REACTIONS.items() for code in codes}

_INDEX_TAKEN = "interface attached at device"


class _Text(NamedTuple):
    """A code that means several things, distinguished by lower-case words of its message."""

    code: str
    words: str
    reaction: Ec2Reaction


_TEXTS = (
    _Text("InvalidParameterValue", "sufficient free ipv4 addresses or prefixes", Ec2Reaction.NO_PREFIX),
    _Text("InvalidParameterValue", "sufficient free ipv4 addresses", Ec2Reaction.SUBNET_FULL),
    _Text("InvalidParameterValue", _INDEX_TAKEN, Ec2Reaction.STALE_VIEW),
    _Text("InvalidParameterValue", "is currently in use", Ec2Reaction.STALE_VIEW),
    _Text("InvalidParameterValue", "not assigned to interface", Ec2Reaction.STALE_VIEW),
    _Text("IncorrectState", "is not 'running'", Ec2Reaction.NOT_RUNNING),
)

_CREDENTIALS = (
    CredentialRetrievalError,
    NoAuthTokenError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)

# There may be better ones by now: codes of EC2, and classes of botocore that `translate` makes codes of.
CREDENTIALS_REFUSED = frozenset(
    {
        *("AuthFailure", "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId"),
        *("SignatureDoesNotMatch", "UnrecognizedClientException"),
        *(error.__name__ for error in _CREDENTIALS),
    }
)

_UNSENT = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError)

# What a call through boto3 can raise: its own errors, EC2's, an answer that is no XML, and files
# (a token, a bundle of certificates) that cannot be read.
CALL_ERRORS = (BotoCoreError, ClientError, ResponseParserError, OSError)


def bare_code(code: str) -> str:
    """Take away the "Client." or "Server." that logs and CloudTrail put before a code."""
    return code.removeprefix("Client.").removeprefix("Server.")


def is_throttle(code: str) -> bool:
    """Whether a code means that EC2 throttled the call."""
    return bare_code(code) in THROTTLES


def no_answer(*, mutation: bool) -> Ec2Reaction:
    """What to do when a request was sent and no clear answer came: only a read had no effect."""
    return Ec2Reaction.AMBIGUOUS if mutation else Ec2Reaction.RETRY_LATER


def reaction_to(code: str, message: str, *, status: int = 400, mutation: bool = True) -> Ec2Reaction:
    """Look an EC2 refusal up in the table.

    A code that the table does not know and that blames the request becomes OUR_FAULT: it fails that
    node's run and is shown and backed off like any failed run. It neither stops the node for good,
    as NODE_OVER would, nor all nodes, as ACCOUNT_WIDE would; and it may not be retried at once.

    Args:
        code: EC2's error code, with or without "Client." or "Server.".
        message: EC2's text.
        status: the HTTP status.
        mutation: whether the call may have changed something.
    """
    code = bare_code(code)
    words = message.lower()
    for text in _TEXTS:
        if code == text.code and text.words in words:
            return text.reaction
    if code in _BY_CODE:
        return _BY_CODE[code]
    if code in FAULTS or status >= 500:  # noqa: PLR2004 - HTTP's own number
        return no_answer(mutation=mutation)
    return Ec2Reaction.OUR_FAULT


def malformed(action: str, what: str, *, mutation: bool) -> Ec2Error:
    """Build the error for an answer of EC2 that lacks what it must have."""
    return Ec2Error(action, "MalformedAnswer", f"the answer {what}", no_answer(mutation=mutation))


def translate(action: str, error: Exception, *, mutation: bool) -> Ec2Error:
    """Turn what boto3 raised into the error that the services know.

    Args:
        action: the EC2 action that was asked for.
        error: one of `CALL_ERRORS`.
        mutation: whether the call may have changed something.
    """
    if isinstance(error, ClientError):
        return _refused(action, error, mutation=mutation)
    code = type(error).__name__
    if isinstance(error, ParamValidationError):
        return Ec2Error(action, code, str(error), Ec2Reaction.OUR_FAULT)
    if isinstance(error, _UNSENT):
        return Ec2Error(action, code, str(error), Ec2Reaction.RETRY_LATER)
    # botocore wraps what sockets raise, so a bare OSError is a file of the credentials.
    if isinstance(error, _CREDENTIALS) or not isinstance(error, BotoCoreError | ResponseParserError):
        return Ec2Error(action, code, str(error), Ec2Reaction.ACCOUNT_WIDE)
    return Ec2Error(action, code, str(error), no_answer(mutation=mutation))


def _refused(action: str, error: ClientError, *, mutation: bool) -> Ec2Error:
    """Translate an error answer, of EC2 or of the service that gives the credentials."""
    answer: dict[str, Any] = error.response
    details = answer.get("Error", {})
    code = bare_code(str(details.get("Code", "Unknown")))
    message = str(details.get("Message", ""))
    status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if error.operation_name != action:
        # STS refused to give a role's credentials: EC2 was not asked at all.
        passing = is_throttle(code) or code in FAULTS or status >= 500  # noqa: PLR2004
        reaction = Ec2Reaction.RETRY_LATER if passing else Ec2Reaction.ACCOUNT_WIDE
        return Ec2Error(action, code, f"{error.operation_name}: {message}", reaction)
    return Ec2Error(
        action,
        code,
        message,
        reaction_to(code, message, status=status, mutation=mutation),
        throttled=is_throttle(code),
        index_taken=_INDEX_TAKEN in message.lower(),
    )
