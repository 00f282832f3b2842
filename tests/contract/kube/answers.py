"""Parts of the answers that several tests expect."""

from __future__ import annotations

from typing import Any

from contract.kube_servers import NODES

APPLY_FAILED = "the server rejected our request due to an error in our request"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def path_of(node: dict[str, Any]) -> str:
    return f"{NODES}/{node['metadata']['name']}"


def version_of(node: dict[str, Any]) -> int:
    return int(node["metadata"]["resourceVersion"])


def failure(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    about = {} if details is None else {"details": details}
    return code, status | {"message": message, "reason": reason, "code": code} | about


def about(name: str, kind: str = "ciliumnodes") -> dict[str, Any]:
    return {"name": name, "group": "cilium.io", "kind": kind}
