"""What the objects showed at any time, read from the API server's file of changes.

Judged is each change of a pool: agents hand out what it names, so that a moment of it is enough for harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def faults(path: Path, machine_of: Mapping[str, str]) -> Iterator[str]:
    """Tell what no object should ever have shown.

    Args:
        path: of the file of changes.
        machine_of: interface → the instance that it was ever attached to.
    """
    pools: dict[str, dict[str, Any]] = {}  # by uid
    for line in path.read_bytes().splitlines():
        obj = msgspec.json.decode(line)["object"]
        metadata, spec = obj["metadata"], obj["spec"]
        pool = spec.get("ipam", {}).get("pool", {})
        if pool == pools.get(metadata["uid"], {}):
            continue
        pools[metadata["uid"]] = pool
        where = f"{metadata['name']}, version {metadata['resourceVersion']}"
        for interface in sorted({entry["resource"] for entry in pool.values()}):
            if interface not in obj.get("status", {}).get("eni", {}).get("enis", {}):
                yield f"{where}: its pool names {interface}, which its status does not show"
            if machine_of.get(interface) != spec["instance-id"]:
                yield f"{where}: its pool names {interface}, which {spec['instance-id']} never had"
