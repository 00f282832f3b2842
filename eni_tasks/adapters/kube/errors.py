"""The one table from the API server's refusals to errors of our own, sorted by what to do next."""

from __future__ import annotations

from typing import Any

import msgspec

from eni_tasks.errors import (
    ClusterRefused,
    ClusterUnavailable,
    ConflictError,
    EniTasksError,
    NodeGone,
)
from eni_tasks.ports.kube import HistoryGone

_TOO_MANY_REQUESTS, _SERVER_FAULTS = 429, 500
_ADVICE = {
    401: "the credentials are not accepted; look at the token of KUBECONFIG or of the service account",
    403: "the rights are missing; see the ClusterRole in the installation guide",
}


class _Cause(msgspec.Struct):
    field: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Status(msgspec.Struct):
    message: str = ""
    details: _Details = msgspec.field(default_factory=_Details)


def refusal(code: int, body: bytes, what: str, *, node: str = "", retry_after: str | None = None) -> EniTasksError:
    """Make the error for an answer that is not a success.

    Args:
        code: HTTP status, or the code of a Status object.
        body: the Status object as sent; may be anything.
        what: what was asked, for the message.
        node: the node that it was about, or "" for none.
        retry_after: the header of that name.

    Returns:
        NodeGone, ConflictError, HistoryGone, ClusterUnavailable or ClusterRefused.
    """
    status = _read(body)
    text = f"{what}: the API server answered {code}: {status.message or body[:200].decode(errors='replace')}"
    if code == 404 and node:  # noqa: PLR2004 - this function is the table of codes
        return NodeGone(text)
    # A refused JSON Patch (a `test` that failed, a parent that is gone) names no field; a broken schema does.
    if code == 409 or (code == 422 and not any(cause.field for cause in status.details.causes)):  # noqa: PLR2004
        return ConflictError(text)
    if code == 410:  # noqa: PLR2004
        return HistoryGone(text)
    if code == _TOO_MANY_REQUESTS or code >= _SERVER_FAULTS:
        return ClusterUnavailable(text, float(retry_after) if retry_after and retry_after.isdecimal() else None)
    return ClusterRefused(f"{text} ({_ADVICE[code]})" if code in _ADVICE else text)


def _read(body: bytes) -> _Status:
    try:
        return msgspec.json.decode(body, type=_Status)
    except msgspec.MsgspecError:
        # A proxy's page, or half an answer: the code alone decides.
        return _Status()


def unreachable(error: Exception, what: str) -> ClusterUnavailable:
    """Make the error for a call without an answer."""
    return ClusterUnavailable(f"{what}: no answer from the API server: {_innermost(error)}")


def _innermost(error: Any) -> str:
    reason = getattr(error, "reason", None)
    return f"{type(error).__name__}: {reason or error}"
