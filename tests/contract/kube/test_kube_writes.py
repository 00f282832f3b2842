"""Replacing and patching objects and their status, as both API servers do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from contract.kube.answers import APPLY_FAILED, MODIFIED, about, failure, path_of, version_of
from contract.kube_servers import JSON_PATCH, MERGE_PATCH, NODES, KubeTarget

Create = Callable[..., dict[str, Any]]


class TestReplace:
    def test_stale_version(self, kube: KubeTarget, create: Create) -> None:
        old = create()
        assert kube.call("PATCH", path_of(old), {"spec": {"a": 1}}, content_type=MERGE_PATCH)[0] == 200
        name = old["metadata"]["name"]
        text = f'Operation cannot be fulfilled on ciliumnodes.cilium.io "{name}": {MODIFIED}'
        assert kube.call("PUT", path_of(old), old) == failure(409, "Conflict", text, about(name))

    def test_version_is_required(self, kube: KubeTarget, create: Create) -> None:
        node = create()
        node["metadata"].pop("resourceVersion")
        code, status = kube.call("PUT", path_of(node), node)
        assert (code, status["reason"]) == (422, "Invalid")
        assert status["details"]["causes"][0]["field"] == "metadata.resourceVersion"

    def test_another_uid(self, kube: KubeTarget, create: Create) -> None:
        node = create()
        node["metadata"]["uid"] = "another"
        code, status = kube.call("PUT", path_of(node), node)
        assert (code, status["reason"]) == (409, "Conflict")
        assert "Precondition failed: UID in precondition: another" in status["message"]

    def test_missing(self, kube: KubeTarget, create: Create) -> None:
        node = create()
        node["metadata"] = {"name": "nobody", "resourceVersion": node["metadata"]["resourceVersion"]}
        assert kube.call("PUT", f"{NODES}/nobody", node)[0] == 404

    def test_generation_counts_changes_of_the_spec(self, kube: KubeTarget, create: Create) -> None:
        node = create()
        node["metadata"]["annotations"] = {"a": "b"}
        node = kube.call("PUT", path_of(node), node)[1]
        assert node["metadata"]["generation"] == 1
        node = kube.call("PUT", path_of(node), node | {"spec": {"a": 1}})[1]
        assert node["metadata"]["generation"] == 2


class TestPatch:
    def test_json_patch(self, kube: KubeTarget, create: Create) -> None:
        node = create(spec={"ipam": {"pool": {"10.0.0.1": {"resource": "eni-1"}}}, "gone": 1})
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": node["metadata"]["uid"]},
            {"op": "add", "path": "/spec/ipam/pool/10.0.0.2", "value": {"resource": "eni-1"}},
            {"op": "replace", "path": "/spec/ipam/pool/10.0.0.1", "value": {"resource": "eni-2"}},
            {"op": "add", "path": "/spec/a~1b", "value": [1]},
            {"op": "add", "path": "/spec/a~1b/-", "value": 3},
            {"op": "add", "path": "/spec/a~1b/1", "value": 2},
            {"op": "remove", "path": "/spec/gone"},
        ]
        code, patched = kube.call("PATCH", path_of(node), operations, content_type=JSON_PATCH)
        assert code == 200
        pool = {"10.0.0.1": {"resource": "eni-2"}, "10.0.0.2": {"resource": "eni-1"}}
        assert patched["spec"] == {"ipam": {"pool": pool}, "a/b": [1, 2, 3]}

    @pytest.mark.parametrize(
        "operation",
        [
            {"op": "test", "path": "/metadata/uid", "value": "another"},
            {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
            {"op": "test", "path": "/spec/absent", "value": 1},
            {"op": "add", "path": "/spec/absent/field", "value": 1},
            {"op": "remove", "path": "/spec/absent"},
            {"op": "add", "path": "/status/ipam/used", "value": {}},
        ],
        ids=["uid", "version", "test-absent", "add-below-absent", "remove-absent", "no-status-yet"],
    )
    @pytest.mark.parametrize("subresource", ["", "/status"], ids=["object", "status"])
    def test_refused_json_patch_changes_nothing(
        self, kube: KubeTarget, create: Create, operation: dict[str, Any], subresource: str
    ) -> None:
        node = create()
        operations = [{"op": "add", "path": "/spec/x", "value": 1}, operation]
        answer = kube.call("PATCH", path_of(node) + subresource, operations, content_type=JSON_PATCH)
        assert answer == failure(422, "Invalid", APPLY_FAILED, {})
        assert kube.call("GET", path_of(node)) == (200, node)

    def test_json_patch_must_be_a_list(self, kube: KubeTarget, create: Create) -> None:
        code, status = kube.call("PATCH", path_of(create()), {"a": 1}, content_type=JSON_PATCH)
        assert (code, status["reason"]) == (400, "BadRequest")

    def test_json_patch_that_breaks_the_schema(self, kube: KubeTarget, create: Create) -> None:
        operations = [{"op": "add", "path": "/spec/ipam", "value": {"pre-allocate": -1}}]
        code, status = kube.call("PATCH", path_of(create()), operations, content_type=JSON_PATCH)
        assert (code, status["reason"]) == (422, "Invalid")
        assert status["details"]["causes"][0]["field"] == "spec.ipam.pre-allocate"

    def test_merge_patch(self, kube: KubeTarget, create: Create) -> None:
        node = create(spec={"a": 1, "b": {"c": 1, "d": 2}, "list": [1, 2]})
        patch = {"spec": {"a": None, "b": {"c": 3}, "list": [9], "e": {"f": None, "g": 1}}}
        code, patched = kube.call("PATCH", path_of(node), patch, content_type=MERGE_PATCH)
        assert code == 200
        assert patched["spec"] == {"b": {"c": 3, "d": 2}, "list": [9], "e": {"g": 1}}

    def test_merge_patch_with_a_stale_version(self, kube: KubeTarget, create: Create) -> None:
        node = create()
        patch = {"metadata": {"resourceVersion": "1"}, "spec": {"a": 1}}
        code, status = kube.call("PATCH", path_of(node), patch, content_type=MERGE_PATCH)
        assert (code, status["reason"]) == (409, "Conflict")

    @pytest.mark.parametrize(
        ("metadata", "code"), [({"uid": "another"}, 422), ({"name": "another"}, 400)], ids=["uid", "name"]
    )
    def test_identity_stays(self, kube: KubeTarget, create: Create, metadata: dict[str, str], code: int) -> None:
        assert kube.call("PATCH", path_of(create()), {"metadata": metadata}, content_type=MERGE_PATCH)[0] == code

    @pytest.mark.parametrize("kind", ["application/strategic-merge-patch+json", "application/json"])
    def test_other_kinds(self, kube: KubeTarget, create: Create, kind: str) -> None:
        code, status = kube.call("PATCH", path_of(create()), {"spec": {}}, content_type=kind)
        assert (code, status["reason"]) == (415, "UnsupportedMediaType")
        for known in (JSON_PATCH, MERGE_PATCH):
            assert known in status["message"]

    def test_missing(self, kube: KubeTarget) -> None:
        operations = [{"op": "test", "path": "/metadata/uid", "value": "x"}]
        for path in (f"{NODES}/nobody", f"{NODES}/nobody/status"):
            code, status = kube.call("PATCH", path, operations, content_type=JSON_PATCH)
            assert (code, status["reason"]) == (404, "NotFound")


class TestStatus:
    def test_a_write_of_the_status_changes_nothing_else(self, kube: KubeTarget, create: Create) -> None:
        node = create(spec={"a": 1})
        patch = {"metadata": {"annotations": {"a": "b"}}, "spec": {"a": 2}, "status": {"ipam": {"used": {}}}}
        code, patched = kube.call("PATCH", path_of(node) + "/status", patch, content_type=MERGE_PATCH)
        assert code == 200
        assert patched["status"] == {"ipam": {"used": {}}}
        assert patched["spec"] == {"a": 1}
        assert "annotations" not in patched["metadata"]
        assert patched["metadata"]["generation"] == 1
        assert version_of(patched) > version_of(node)
        assert kube.call("GET", path_of(node) + "/status") == (200, patched)

    def test_a_write_of_the_object_leaves_the_status(self, kube: KubeTarget, create: Create) -> None:
        node = create()
        kube.call("PATCH", path_of(node) + "/status", {"status": {"a": 1}}, content_type=MERGE_PATCH)
        patch = {"metadata": {"annotations": {"a": "b"}}, "status": {"a": 2}}
        code, patched = kube.call("PATCH", path_of(node), patch, content_type=MERGE_PATCH)
        assert (code, patched["status"], patched["metadata"]["annotations"]) == (200, {"a": 1}, {"a": "b"})
        replaced = kube.call("PUT", path_of(node), {**patched, "status": {}})[1]
        assert replaced["status"] == {"a": 1}

    def test_schema(self, kube: KubeTarget, create: Create) -> None:
        patch = {"status": {"eni": {"enis": {"eni-1": {"number": -1}}}}}
        code, status = kube.call("PATCH", path_of(create()) + "/status", patch, content_type=MERGE_PATCH)
        assert (code, status["reason"]) == (422, "Invalid")
        assert status["details"]["causes"][0]["field"] == "status.eni.enis.eni-1.number"

    @pytest.mark.parametrize("subresource", ["", "/status"], ids=["object", "status"])
    def test_a_write_without_a_change_is_none(self, kube: KubeTarget, create: Create, subresource: str) -> None:
        node = create(spec={"a": 1})
        other = create("other")
        kube.call("PATCH", path_of(node) + "/status", {"status": {"a": 1}}, content_type=MERGE_PATCH)
        before = kube.call("GET", path_of(node))[1]
        patch = {"spec": {"a": 1}, "status": {"a": 1}}
        same = kube.call("PATCH", path_of(node) + subresource, patch, content_type=MERGE_PATCH)
        assert same[1]["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        kube.call("PATCH", path_of(other), {"spec": {"b": 1}}, content_type=MERGE_PATCH)
        query = f"?watch=1&resourceVersion={version_of(before)}&timeoutSeconds=1"
        names = [event["object"]["metadata"]["name"] for event in kube.lines(NODES + query)]
        assert names == [other["metadata"]["name"]]
