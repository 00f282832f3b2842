"""One tree of errors, sorted by what the caller does next.

A `TransientError` is tried again later, a `PermanentError` is not. Vendor errors are translated into
these at the adapters and chained; nothing above an adapter sees a botocore, redis or urllib3 type.
Expected trouble that a plan can deal with (no subnet with room, no free slot) is a value with a
reason (`eni_tasks.model.plan`), not an error.
"""

from __future__ import annotations

from enum import StrEnum


class EniTasksError(Exception):
    """Base of all errors that this package raises on purpose."""


class PermanentError(EniTasksError):
    """Trying the same again cannot help."""


class TransientError(EniTasksError):
    """The same may work later.

    Args:
        message: what happened, to what.
        retry_after_seconds: the shortest sensible wait, or None when the caller's back-off decides.
    """

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class InvalidInput(PermanentError):
    """Settings, task arguments, objects or answers that cannot be used; the message has which and why."""


class NodeGone(PermanentError):
    """The CiliumNode does not exist (any more), or is another object under the same name."""


class ConflictError(TransientError):
    """The object was changed by another client between our read and our write."""


class ClusterUnavailable(TransientError):
    """The Kubernetes API server did not answer, refused for now, or asked to slow down."""


class ClusterRefused(PermanentError):
    """The Kubernetes API server refuses what we ask (rights, schema)."""


class StateUnavailable(TransientError):
    """Redis did not answer."""


class LeaseLost(TransientError):
    """Another worker may hold the node now; this one must not mutate it any further."""


class Ec2Reaction(StrEnum):
    """What to do next after EC2 refused a call (`facts`: EC2 API "Error codes").

    The one table that sorts codes into these is `eni_tasks.adapters.ec2.errors`.
    """

    RETRY_LATER = "retry-later"  # throttled or a passing fault; it had no effect
    AMBIGUOUS = "ambiguous"  # sent, and no clear answer: read first, then decide
    SUBNET_FULL = "subnet-full"  # this subnet has no room: it cools down, and another is chosen
    NO_PREFIX = (
        "no-prefix"  # this subnet has no free /28 prefix: others are asked for one; it may have single addresses
    )
    INTERFACE_FULL = "interface-full"  # our view of the interface is stale: read again, plan again
    INSTANCE_FULL = "instance-full"  # fewer interfaces fit than we thought: learn the limit
    STALE_VIEW = "stale-view"  # a thing we named is not (or not yet, or no longer) so: read again
    NOT_RUNNING = "not-running"  # the instance is stopped: look again in a minute
    NODE_OVER = "node-over"  # the instance is gone or unusable: stop until the object changes
    ACCOUNT_WIDE = "account-wide"  # quota, rights, credentials: no worker should try for a while
    OUR_FAULT = "our-fault"  # a request that we should never have built


class Ec2Error(EniTasksError):
    """EC2 refused a call, or did not answer.

    Args:
        action: EC2 action, such as "AttachNetworkInterface".
        code: EC2's error code without a "Client." prefix, or the transport error's class name.
        message: EC2's text.
        reaction: what to do next.
        throttled: EC2's rate limit for the action is exhausted; all workers should slow down.
        index_taken: an attach named a device index that something else holds; the next may be free.
    """

    def __init__(  # noqa: PLR0913 - one flat record of a refusal
        self,
        action: str,
        code: str,
        message: str,
        reaction: Ec2Reaction,
        *,
        throttled: bool = False,
        index_taken: bool = False,
    ) -> None:
        super().__init__(f"{action}: {code}: {message}")
        self.action = action
        self.code = code
        self.message = message
        self.reaction = reaction
        self.throttled = throttled
        self.index_taken = index_taken
