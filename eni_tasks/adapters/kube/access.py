"""What the API server serves and lets us do: `ports.doctor.ClusterRights`."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

import msgspec

from eni_tasks.errors import ClusterUnavailable

if TYPE_CHECKING:
    from eni_tasks.adapters.kube.client import KubeClient

GROUP, VERSION = "cilium.io", "v2"
T = TypeVar("T")
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class _Resource(msgspec.Struct):
    name: str


class _Resources(msgspec.Struct):
    resources: list[_Resource] = []


class _Version(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct):
    name: str = ""
    versions: list[_Version] = []


class _Groups(msgspec.Struct):
    groups: list[_Group] = []


class _Verdict(msgspec.Struct):
    allowed: bool = False
    reason: str = ""


class _Review(msgspec.Struct):
    status: _Verdict


class KubeAccess:
    """Asks the server that the client leads to.

    Args:
        client: the way there.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def serves(self) -> frozenset[str]:
        """See the port."""
        groups = self._asked("/apis", _Groups, "reading the API groups").groups
        if not any(group.name == GROUP and _Version(VERSION) in group.versions for group in groups):
            return frozenset()
        found = self._asked(f"/apis/{GROUP}/{VERSION}", _Resources, f"reading the resources of {GROUP}/{VERSION}")
        return frozenset(resource.name for resource in found.resources)

    def may(
        self, verb: str, resource: str, subresource: str = "", *, group: str = GROUP, namespace: str = ""
    ) -> tuple[bool, str]:
        """See the port."""
        attributes = {"group": group, "resource": resource, "subresource": subresource, "verb": verb}
        if namespace:
            attributes["namespace"] = namespace
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        what = f"asking whether we may {attributes['verb']} {attributes['resource']}"
        verdict = self._asked(_REVIEWS, _Review, what, review).status
        return verdict.allowed, verdict.reason

    def now(self) -> float | None:
        """See the port."""
        response = self._client.open("GET", "/version", what="reading the server's clock")
        response.drain_conn()
        date = response.headers.get("Date")
        return parsedate_to_datetime(date).timestamp() if date else None

    def _asked(self, path: str, kind: type[T], what: str, body: object = None) -> T:
        answer = self._client.call("GET" if body is None else "POST", path, what=what, body=body)
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.MsgspecError as error:
            raise ClusterUnavailable(f"{what}: the answer can't be read: {error}") from error
