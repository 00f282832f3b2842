"""The API server's refusals: one exception, and the Status objects that clients read.

Wording, reasons and details are those of the real server, since clients branch on them.
"""

from __future__ import annotations

from typing import Any

from eni_tasks.sandbox.serving import Refusal

GROUP = "cilium.io"
PLURAL = "ciliumnodes"
KIND = "CiliumNode"
RESOURCE = f"{PLURAL}.{GROUP}"

STALE_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ApiError(Refusal):
    """A refusal, ready to be sent.

    Args:
        code: HTTP status.
        message: the text for people.
        reason: the word for programs; the usual one of the code when not given.
        details: what it is about.
        metadata: of the Status object itself (a fresh continue token).
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str = "",
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata or {},
            "status": "Failure",
            "message": message,
            "reason": reason or REASONS.get(code, "Unknown"),
            "code": code,
        }
        if details is not None:
            self.body["details"] = details


def named(name: str) -> dict[str, Any]:
    """Returns the details that name a CiliumNode, or all of them for ""."""
    return ({"name": name} if name else {}) | {"group": GROUP, "kind": PLURAL}


def not_found(name: str) -> ApiError:
    """Returns the refusal for a node that doesn't exist."""
    return ApiError(404, f'{RESOURCE} "{name}" not found', details=named(name))


def not_supported(verb: str) -> ApiError:
    """Returns the refusal of a verb that makes no sense at a path."""
    text = f'{verb} is not supported on resources of kind "{RESOURCE}"'
    return ApiError(405, text, details=named(""))


def already_exists(name: str) -> ApiError:
    """Returns the refusal to create a name twice."""
    return ApiError(409, f'{RESOURCE} "{name}" already exists', reason="AlreadyExists", details=named(name))


def conflict(name: str, cause: str = MODIFIED) -> ApiError:
    """Returns the refusal of a write that was based on another version or another object."""
    return ApiError(409, f'Operation cannot be fulfilled on {RESOURCE} "{name}": {cause}', details=named(name))


def uid_mismatch(name: str, wanted: str, found: str) -> ApiError:
    """Returns the refusal of a write meant for another object of the same name."""
    return conflict(name, f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}")


def precondition_failed(name: str, field: str, wanted: str, found: str) -> ApiError:
    """Returns the refusal to delete another object, or another version, than the one meant."""
    text = f"the {field} in the precondition ({wanted}) does not match the {field} in record ({found})."
    return conflict(name, f"{text} The object might have been deleted and then recreated")


def invalid(name: str, causes: list[dict[str, str]]) -> ApiError:
    """Returns the refusal of an object that breaks the schema.

    Args:
        name: the node.
        causes: one entry per fault, with `reason`, `message` and `field`.
    """
    faults = [f"{cause['field']}: {cause['message']}" for cause in causes]
    listed = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    details = named(name) | {"kind": KIND, "causes": causes}
    return ApiError(422, f'{KIND}.{GROUP} "{name}" is invalid: {listed}', details=details)


def patch_refused() -> ApiError:
    """Returns the refusal of a JSON Patch that cannot be applied, such as one whose `test` failed.

    The real server doesn't say which operation it was.
    """
    return ApiError(422, "the server rejected our request due to an error in our request", details={})


def unauthorized() -> ApiError:
    """Returns the refusal of a missing or outdated token."""
    return ApiError(401, "Unauthorized")


def forbidden(verb: str, resource: str, name: str) -> ApiError:
    """Returns the refusal for missing rights."""
    subject = f'{RESOURCE} "{name}"' if name else RESOURCE
    action = f'User "sandbox" cannot {verb} resource "{resource}" in API group "{GROUP}" at the cluster scope'
    return ApiError(403, f"{subject} is forbidden: {action}", details=named(name))
