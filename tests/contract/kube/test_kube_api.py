"""What both API servers answer, seen as raw HTTP: the sandbox must behave as the real one does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from contract.kube.answers import about, failure, path_of
from contract.kube_servers import ADMIN, JSON_PATCH, MERGE_PATCH, NODES, STRANGER, KubeTarget

Create = Callable[..., dict[str, Any]]
Knobs = Callable[..., None]


class TestObjects:
    def test_create_sets_identity_and_drops_the_status(self, kube: KubeTarget, create: Create) -> None:
        node = create(spec={"eni": {"vpc-id": "vpc-1"}}, status={"ipam": {}}, junk=1)
        assert node["metadata"]["uid"]
        assert node["metadata"]["generation"] == 1
        assert node["metadata"]["creationTimestamp"].endswith("Z")
        assert "status" not in node
        assert "junk" not in node
        assert kube.call("GET", path_of(node)) == (200, node)

    def test_unknown_fields_stay_where_the_definition_keeps_them(self, create: Create) -> None:
        node = create(spec={"new": 1, "eni": {"new": {"deep": None}}, "ipam": None})
        assert node["spec"] == {"new": 1, "eni": {"new": {"deep": None}}}

    def test_names_are_taken_once(self, kube: KubeTarget, create: Create) -> None:
        name = create()["metadata"]["name"]
        body = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}, "spec": {}}
        text = f'ciliumnodes.cilium.io "{name}" already exists'
        assert kube.call("POST", NODES, body) == failure(409, "AlreadyExists", text, about(name))

    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    def test_missing(self, kube: KubeTarget, method: str) -> None:
        expected = failure(404, "NotFound", 'ciliumnodes.cilium.io "nobody" not found', about("nobody"))
        assert kube.call(method, f"{NODES}/nobody") == expected

    @pytest.mark.parametrize(
        ("spec", "field", "fault"),
        [
            ({"ipam": {"pre-allocate": -1}}, "spec.ipam.pre-allocate", ("-1", "should be greater than or equal to 0")),
            ({"eni": {"first-interface-index": -1}}, "spec.eni.first-interface-index", ("-1", "should be greater")),
            ({"ipam": {"max-allocate": "9"}}, "spec.ipam.max-allocate", ('"string"', "must be of type integer")),
            ({"ipam": {"pool": {"10.0.0.1": {"resource": 1}}}}, "spec.ipam.pool.10.0.0.1.resource", ('"integer"', "")),
            ({"eni": []}, "spec.eni", ('"array"', "must be of type object")),
        ],
        ids=["negative", "negative-index", "text-for-number", "number-for-text", "list-for-object"],
    )
    def test_schema(self, kube: KubeTarget, spec: dict[str, Any], field: str, fault: tuple[str, str]) -> None:
        body = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": "bad"}, "spec": spec}
        code, status = kube.call("POST", NODES, body)
        assert (code, status["reason"]) == (422, "Invalid")
        assert {key: status["details"][key] for key in ("name", "group", "kind")} == about("bad", "CiliumNode")
        (cause,) = status["details"]["causes"]
        assert cause["field"] == field
        assert cause["message"].startswith(f"Invalid value: {fault[0]}: {field} in body ")
        assert fault[1] in cause["message"]
        assert status["message"] == f'CiliumNode.cilium.io "bad" is invalid: {field}: {cause["message"]}'

    def test_spec_is_required(self, kube: KubeTarget) -> None:
        body = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": "bad"}}
        cause = {"reason": "FieldValueRequired", "message": "Required value", "field": "spec"}
        details = about("bad", "CiliumNode") | {"causes": [cause]}
        text = 'CiliumNode.cilium.io "bad" is invalid: spec: Required value'
        assert kube.call("POST", NODES, body) == failure(422, "Invalid", text, details)


class TestDelete:
    def test_answer(self, kube: KubeTarget, create: Create) -> None:
        node = create()
        details = about(node["metadata"]["name"]) | {"uid": node["metadata"]["uid"]}
        expected = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        assert kube.call("DELETE", path_of(node)) == (200, expected)
        assert kube.call("GET", path_of(node))[0] == 404

    @pytest.mark.parametrize("condition", [{"uid": "another"}, {"resourceVersion": "1"}], ids=["uid", "version"])
    def test_preconditions(self, kube: KubeTarget, create: Create, condition: dict[str, str]) -> None:
        code, status = kube.call("DELETE", path_of(create()), {"preconditions": condition})
        assert (code, status["reason"]) == (409, "Conflict")
        assert "in the precondition" in status["message"]

    def test_finalizers_hold_it(self, kube: KubeTarget, create: Create) -> None:
        node = create()
        patch = {"metadata": {"finalizers": ["example.org/hold"]}}
        kube.call("PATCH", path_of(node), patch, content_type=MERGE_PATCH)
        code, held = kube.call("DELETE", path_of(node))
        assert (code, held["kind"]) == (200, "CiliumNode")
        assert held["metadata"]["deletionTimestamp"]
        kube.call("PATCH", path_of(node), {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
        assert kube.call("GET", path_of(node))[0] == 404


class TestOthers:
    def test_ready_and_version(self, kube: KubeTarget) -> None:
        assert kube.call("GET", "/readyz") == (200, "ok")
        assert kube.call("GET", "/version")[1]["gitVersion"].startswith("v1.")

    def test_discovery(self, kube: KubeTarget) -> None:
        resources = kube.call("GET", "/apis/cilium.io/v2")[1]["resources"]
        assert {resource["name"] for resource in resources} == {"ciliumnodes", "ciliumnodes/status"}
        assert {"get", "list", "patch", "watch"} <= set(resources[0]["verbs"])

    @pytest.mark.parametrize("subresource", ["", "status"])
    @pytest.mark.parametrize("allowed", [True, False])
    def test_access_review(self, kube: KubeTarget, knobs: Knobs, subresource: str, *, allowed: bool) -> None:
        resource = f"ciliumnodes/{subresource}" if subresource else "ciliumnodes"
        attributes = {"verb": "patch", "group": "cilium.io", "resource": "ciliumnodes", "subresource": subresource}
        kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        body = kind | {"spec": {"resourceAttributes": attributes}}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        knobs(denied=[] if allowed else [f"patch {resource}"])
        code, review = kube.call("POST", path, body, token=ADMIN if allowed else STRANGER)
        assert (code, review["status"]["allowed"]) == (201, allowed)
        code, status = kube.call(
            "PATCH",
            f"{NODES}/nobody/{subresource}".rstrip("/"),
            [],
            content_type=JSON_PATCH,
            token=ADMIN if allowed else STRANGER,
        )
        assert code == (404 if allowed else 403)
        if not allowed:
            user = "sandbox" if kube.admin else "stranger"
            action = f'User "{user}" cannot patch resource "{resource}" in API group "cilium.io" at the cluster scope'
            text = f'ciliumnodes.cilium.io "nobody" is forbidden: {action}'
            assert (code, status) == failure(403, "Forbidden", text, about("nobody"))

    def test_unknown_token(self, kube: KubeTarget, knobs: Knobs) -> None:
        knobs(token=ADMIN)
        answer = kube.call("GET", NODES, token="outdated")  # noqa: S106 - not a secret
        assert answer == failure(401, "Unauthorized", "Unauthorized")
