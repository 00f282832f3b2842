"""What the sandbox's API has and the real one lacks: the process, the knobs, the record, fan-out."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import urllib3
from contract.kube.conftest import manifest
from contract.kube_servers import MERGE_PATCH, NODES

from eni_tasks.sandbox.kube.knobs import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from contract.kube_servers import KubeTarget


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_process(ending: signal.Signals) -> None:
    command = [sys.executable, "-m", "eni_tasks.sandbox.kube", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = json.loads(process.stdout.readline())["url"]
        with urllib3.PoolManager(retries=False) as pool:
            assert pool.request("GET", f"{url}/readyz").data == b"ok"
            # An open watch must not hold it back.
            watch = pool.request("GET", f"{url}{NODES}?watch=1", preload_content=False)
            process.send_signal(ending)
            assert process.wait(10) == 0
            watch.close()


def test_objects_outlive_a_killed_process(tmp_path: Path) -> None:
    """What was answered is there again, later versions are higher, and a watch from before is too old."""
    command = [sys.executable, "-m", "eni_tasks.sandbox.kube", "--data", str(tmp_path / "data")]

    @contextmanager
    def process() -> Iterator[Callable[..., Any]]:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as running, urllib3.PoolManager(retries=False) as pool:
            assert running.stdout
            url = json.loads(running.stdout.readline())["url"] + NODES

            def call(method: str, path: str = "", body: Any = None) -> Any:
                headers = {"Content-Type": MERGE_PATCH} if method == "PATCH" else {}
                answer = pool.request(method, url + path, json=body, headers=headers)
                return json.loads(answer.data.splitlines()[0])

            yield call
            running.kill()

    with process() as call:
        for name in ("a", "b"):
            call("POST", body=manifest(name))
        call("DELETE", "/b")
        before = call("PATCH", "/a", {"spec": {"number": 1}})
    with process() as call:
        assert call("GET")["items"] == [before]
        event = call("GET", f"?watch=1&resourceVersion={int(before['metadata']['resourceVersion']) - 1}")
        assert event["object"]["code"] == 410
        after = call("POST", body=manifest("b"))
        assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])


def test_record_counts_by_verb_and_subresource(sandbox: KubeTarget) -> None:
    assert sandbox.admin
    sandbox.call("POST", NODES, manifest("a"))
    sandbox.call("PATCH", f"{NODES}/a/status", {"status": {}}, content_type=MERGE_PATCH)
    sandbox.call("GET", NODES)
    sandbox.lines(f"{NODES}?watch=1&timeoutSeconds=1")
    assert sandbox.call("GET", f"{NODES}/b")[0] == 404
    record = sandbox.admin.record()
    assert record.counts == {"create": 1, "patch/status": 1, "list": 1, "watch": 1, "get": 1}
    assert [(entry.verb, entry.name, entry.code) for entry in record.log[-1:]] == [("get", "b", 404)]
    sandbox.admin.reset_record()
    assert sandbox.admin.record().counts == {}


def test_faults_hit_what_they_name(sandbox: KubeTarget) -> None:
    assert sandbox.admin
    for name in ("a", "b"):
        sandbox.call("POST", NODES, manifest(name))
    fault = Fault(verb="patch", code=500, name="a", subresource="status", skip_count=1, times_count=2)
    sandbox.admin.fault(fault)

    def codes(path: str, times_count: int) -> list[int]:
        body = {"status": {}}
        return [sandbox.call("PATCH", NODES + path, body, content_type=MERGE_PATCH)[0] for _ in range(times_count)]

    assert codes("/a", 2) == [200, 200]
    assert codes("/b/status", 2) == [200, 200]
    assert codes("/a/status", 4) == [200, 500, 500, 200]
    sandbox.admin.fault(Fault(verb="*", times_count=9))
    sandbox.admin.clear_faults()
    assert codes("/a", 1) == [200]


def test_bounded_history(sandbox: KubeTarget) -> None:
    assert sandbox.admin
    version = int(sandbox.call("POST", NODES, manifest("a"))[1]["metadata"]["resourceVersion"])
    sandbox.admin.set(history_limit_count=10)
    for number in range(20):
        patch = {"spec": {"number": number}}
        sandbox.call("PATCH", f"{NODES}/a", patch, content_type=MERGE_PATCH)
    (event,) = sandbox.lines(f"{NODES}?watch=1&resourceVersion={version}&timeoutSeconds=5")
    assert event["object"]["code"] == 410
    assert len(sandbox.lines(f"{NODES}?watch=1&resourceVersion={version + 15}&timeoutSeconds=1")) == 5


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("set_knobs", {"no_such_knob": 1}),
        ("set_knobs", {"latency_seconds": "soon"}),
        ("add_faults", {"faults": [{"code": "many"}]}),
        ("compact", {"colour": "red"}),
        ("no_such_method", {}),
        ("_api", {}),
    ],
    ids=str,
)
def test_a_wrong_call_of_the_control_api_changes_nothing(
    sandbox: KubeTarget, name: str, arguments: dict[str, Any]
) -> None:
    assert sandbox.admin
    with pytest.raises(RuntimeError, match=name):
        sandbox.admin._call(name, None, **arguments)
    assert sandbox.call("GET", NODES)[0] == 200
