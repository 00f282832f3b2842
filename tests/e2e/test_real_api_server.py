"""The same processes against the real kube-apiserver, with the rights of the installation guide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract.kube_servers import ADMIN, NODES, real_server
from waiting import until
from whole import running

if TYPE_CHECKING:
    from pathlib import Path


def test_the_same_processes_against_the_real_api_server(tmp_path: Path) -> None:
    with real_server() as api, running(with_flower=False, start_system=False) as system:
        system.sandbox.environment["ENI_TASKS_KUBE_EVENTS"] = "nodes"
        system.sandbox.environment["KUBECONFIG"] = str(api.kubeconfig(tmp_path / "kubeconfig"))
        system.sandbox.start_system()
        system.fleet.add(3, ipam={"pre-allocate": 12})  # for their instances; these objects are not watched
        for name in system.fleet.names:
            spec = system.fleet.get(name)["spec"]
            body = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}, "spec": spec}
            code, answer = api.call("POST", NODES, body, token=ADMIN)
            assert code == 201, answer

        def pool(name: str) -> dict[str, Any]:
            found: dict[str, Any] = api.call("GET", f"{NODES}/{name}")[1]["spec"].get("ipam", {}).get("pool", {})
            return found

        until(lambda: all(len(pool(name)) >= 12 for name in system.fleet.names), "three pools at size")
        for name in system.fleet.names:
            shown = api.call("GET", f"{NODES}/{name}")[1]
            interfaces = shown["status"]["eni"]["enis"]
            assert {entry["resource"] for entry in shown["spec"]["ipam"]["pool"].values()} <= set(interfaces)
        used = {address: {"owner": "default/pod"} for address in list(pool("node-0000"))[:3]}
        patch = {"status": {"ipam": {"used": used}}}
        path = f"{NODES}/node-0000/status"
        code, answer = api.call("PATCH", path, patch, content_type="application/merge-patch+json")
        assert code == 200, answer
        until(lambda: len(pool("node-0000")) >= 15, "the pool has grown")
        until(lambda: system.full(3), "all pools at size")
        assert system.clean()

        def told(kind: str) -> dict[str, set[str]]:
            """The nodes that Events of each reason are about."""
            found: dict[str, set[str]] = {}
            for event in api.call("GET", "/api/v1/namespaces/default/events", token=ADMIN)[1]["items"]:
                if event["involvedObject"]["kind"] == kind and event["source"]["component"] == "eni-tasks":
                    found.setdefault(event["reason"], set()).add(event["involvedObject"]["name"])
            return found

        # With 12 addresses wanted free and 3 used, ten per interface are not enough.
        until(lambda: "node-0000" in told("CiliumNode").get("InterfaceCreated", ()), "an Event tells of the interface")
        assert "node-0000" in told("Node")["InterfaceCreated"]
        system.ec2.set_knobs(denied_actions=["*Address*", "Create*"])
        patch = {"status": {"ipam": {"used": {address: {"owner": "default/pod"} for address in pool("node-0001")}}}}
        path = f"{NODES}/node-0001/status"
        assert api.call("PATCH", path, patch, content_type="application/merge-patch+json")[0] == 200
        until(lambda: "node-0001" in told("CiliumNode").get("Ec2Refused", ()), "an Event tells of the refused right")
