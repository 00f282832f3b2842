"""Writes JSON Patch operations against one version of an object, so that no other writer loses.

The agent, people and this system change the same object at the same time, and a process that stood still must not
replace what others wrote meanwhile. Each list of operations begins with a test on the object's version: what it
replaces is what it was computed from, or the API server refuses all of it. Which fields to write is `status`'s
business.
"""

from __future__ import annotations

from typing import Any

import msgspec

from eni_tasks.model.cilium_node import CiliumNode, EniStatus, IpamSpec, IpamStatus, Spec, Status

Path = tuple[str, ...]
Operation = dict[str, Any]


class PatchWriter:
    """Collects operations for one object.

    Args:
        obj: the object as it was read.
    """

    def __init__(self, obj: CiliumNode) -> None:
        self._obj = obj
        self._operations: list[Operation] = []
        self._present = _maps_of(obj)

    def put(self, path: Path, value: object) -> None:
        """Set the value at a path, creating what is missing above it."""
        for length in range(1, len(path)):
            parent = path[:length]
            if parent not in self._present:
                self._present.add(parent)
                self._operations.append({"op": "add", "path": _pointer(parent), "value": {}})
        self._operations.append({"op": "add", "path": _pointer(path), "value": msgspec.to_builtins(value)})

    def remove(self, path: Path) -> None:
        """Remove the value at a path that the object has."""
        self._operations.append({"op": "remove", "path": _pointer(path)})

    def operations(self) -> list[Operation]:
        """Give all operations, guarded; none if nothing is to be written."""
        if not self._operations:
            return []
        metadata = self._obj.metadata
        guards = {("metadata", "uid"): metadata.uid, ("metadata", "resourceVersion"): metadata.resource_version}
        tests = [{"op": "test", "path": _pointer(path), "value": value} for path, value in guards.items()]
        return tests + self._operations


def _maps_of(obj: CiliumNode) -> set[Path]:
    """The maps that an object has, of those under which something is written."""
    spec, status = obj.spec or Spec(), obj.status or Status()
    parts: dict[Path, object] = {
        ("spec",): obj.spec,
        ("spec", "eni"): spec.eni,
        ("spec", "ipam"): spec.ipam,
        ("spec", "ipam", "pool"): (spec.ipam or IpamSpec()).pool,
        ("status",): obj.status,
        ("status", "eni"): status.eni,
        ("status", "eni", "enis"): (status.eni or EniStatus()).enis,
        ("status", "ipam"): status.ipam,
        ("status", "ipam", "release-ips"): (status.ipam or IpamStatus()).release_ips,
        ("status", "ipam", "operator-status"): (status.ipam or IpamStatus()).operator_status,
    }
    return {path for path, part in parts.items() if part is not None}


def _pointer(path: Path) -> str:
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)
