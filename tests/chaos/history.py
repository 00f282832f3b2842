"""What the objects showed at any time, read from the API server's file of changes.

Judged is each version of each object: agents hand out what a pool names, so that a moment of it is enough for harm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from eni_tasks.sandbox.kube.history import RESTORED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from chaos.agents import Position

    Uses = Mapping[tuple[str, str], list[list[Position]]]


@dataclass
class _Shown:
    """What one object shows: its instance, and the interface of each address of its pool."""

    name: str
    instance: str
    pool: dict[str, str]


@dataclass
class _Cluster:
    """What all objects show at one moment."""

    by_uid: dict[str, _Shown] = field(default_factory=dict)
    holders: dict[str, set[str]] = field(default_factory=dict)  # address → uids of the objects whose pools name it

    def show(self, uid: str, now: _Shown | None) -> _Shown | None:
        """Replace what an object shows (None: it was deleted); returns what it showed before."""
        before = self.by_uid.pop(uid, None)
        for address in before.pool if before else ():
            self.holders[address].discard(uid)
        if now:
            self.by_uid[uid] = now
            for address in now.pool:
                self.holders.setdefault(address, set()).add(uid)
        return before


def faults(path: Path, machine_of: Mapping[str, str], uses: Uses) -> Iterator[str]:
    """Tell what no object should ever have shown.

    Args:
        path: of the file of changes.
        machine_of: interface → the instance that it was ever attached to.
        uses: instance and address → between which versions pods used it.
    """
    cluster, restores = _Cluster(), 0
    for line in path.read_bytes().splitlines():
        event = msgspec.json.decode(line)
        if event["type"] == RESTORED:
            # What the backup lacks was withdrawn by the restore, and not by a write.
            cluster, restores = _Cluster(), restores + 1
            continue
        obj = event["object"]
        metadata, spec = obj["metadata"], obj["spec"]
        pool = {address: entry.get("resource", "") for address, entry in _pool(spec).items()}
        now = _Shown(metadata["name"], spec["instance-id"], pool)
        before = cluster.show(metadata["uid"], None if event["type"] == "DELETED" else now)
        version = int(metadata["resourceVersion"])
        where = f"{metadata['name']} ({now.instance}), version {version} after {restores} restores"
        found = [*_torn(now, obj, machine_of), *_shared(now, cluster)]
        if before and before.instance == now.instance:
            lost = [
                address
                for address in before.pool.keys() - pool.keys()
                if address in _used(obj) or _in_use(uses, (now.instance, address), (restores, version))
            ]
            found += [f"it lost {', '.join(sorted(lost))}, which pods use"] if lost else []
        yield from (f"{where}: {fault}" for fault in found)


def _torn(now: _Shown, obj: dict[str, Any], machine_of: Mapping[str, str]) -> Iterator[str]:
    """What an agent does not accept, or should not."""
    interfaces = obj.get("status", {}).get("eni", {}).get("enis", {})
    for interface in sorted(set(now.pool.values())):
        if interface not in interfaces:
            yield f"its pool names {interface}, which its status does not show"
        if machine_of.get(interface) != now.instance:
            yield f"its pool names {interface}, which its instance never had"
    for interface, shown in interfaces.items():
        if not shown.get("vpc", {}).get("primary-cidr"):
            yield f"its status shows {interface} without the VPC's primary CIDR"


def _shared(now: _Shown, cluster: _Cluster) -> Iterator[str]:
    """Addresses that the objects of one instance share. (An object may outlive its instance for a while.)"""
    for address in now.pool:
        others = [cluster.by_uid[uid] for uid in cluster.holders.get(address, ())]
        names = sorted(other.name for other in others if other.instance == now.instance and other is not now)
        if names:
            yield f"its pool names {address}, as does that of {', '.join(names)}"


def _pool(spec: dict[str, Any]) -> dict[str, Any]:
    pool: dict[str, Any] = spec.get("ipam", {}).get("pool", {})
    return pool


def _used(obj: dict[str, Any]) -> dict[str, Any]:
    used: dict[str, Any] = obj.get("status", {}).get("ipam", {}).get("used", {})
    return used


def _in_use(uses: Uses, key: tuple[str, str], position: Position) -> bool:
    return any(since <= position <= until for since, until in uses.get(key, ()))
