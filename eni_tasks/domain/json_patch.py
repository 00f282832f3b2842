"""Writes JSON Patch operations against one read of an object, so that other writers never lose.

The agent, people and we change the same object at the same time. Each list begins with a test on
the object's uid. What others may create in the meantime is only added while the object is still at
the version that was read; what only we write is added at any time. Which fields to write is
`status`'s business.
"""

from __future__ import annotations

from typing import Any

import msgspec

from eni_tasks.model.cilium_node import CiliumNode, EniSpec, EniStatus, IpamSpec, IpamStatus, Spec, Status

Path = tuple[str, ...]
Operation = dict[str, Any]


class PatchWriter:
    """Collects operations for one object.

    Args:
        obj: the object as it was read.
        ours: paths that no other writer creates; their content is ours as well.
    """

    def __init__(self, obj: CiliumNode, ours: frozenset[Path]) -> None:
        self._obj = obj
        self._ours = ours
        self._operations: list[Operation] = []
        self._present = _maps_of(obj)
        self._at_version = False

    def put(self, path: Path, value: object) -> None:
        """Set the value at a path, creating what is missing above it."""
        for length in range(1, len(path)):
            parent = path[:length]
            if parent not in self._present:
                self._present.add(parent)
                self._add(parent, {})
        self._add(path, msgspec.to_builtins(value))

    def remove(self, path: Path) -> None:
        """Remove the value at a path that the object has."""
        self._operations.append({"op": "remove", "path": _pointer(path)})

    def operations(self) -> list[Operation]:
        """Give all operations, guarded; none if nothing is to be written."""
        if not self._operations:
            return []
        metadata, spec = self._obj.metadata, self._obj.spec or Spec()
        guards: dict[Path, str | None] = {
            ("metadata", "uid"): metadata.uid,
            # Another machine may come under the same object: what is written belongs to this one.
            ("spec", "instance-id"): spec.instance_id or None,
            ("spec", "eni", "instance-id"): (spec.eni or EniSpec()).instance_id or None,
            ("metadata", "resourceVersion"): metadata.resource_version if self._at_version else None,
        }
        tests = ((path, value) for path, value in guards.items() if value is not None)
        return [{"op": "test", "path": _pointer(path), "value": value} for path, value in tests] + self._operations

    def _add(self, path: Path, value: object) -> None:
        # "add" replaces what is there: harmless below a path of ours, else another writer's change is lost.
        self._at_version |= not any(path[: len(own)] == own for own in self._ours)
        self._operations.append({"op": "add", "path": _pointer(path), "value": value})


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
        ("status", "ipam", "operator-status"): (status.ipam or IpamStatus()).operator_status,
    }
    return {path for path, part in parts.items() if part is not None}


def _pointer(path: Path) -> str:
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)
