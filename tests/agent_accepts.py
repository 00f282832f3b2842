"""The consistency check of Cilium's agents: what they refuse they drop as a whole."""

from __future__ import annotations

from typing import Any


def agent_accepts(enis: dict[str, Any], pool: dict[str, Any]) -> str | None:
    """Check what an object shows as an agent would.

    Args:
        enis: `status.eni.enis`.
        pool: `spec.ipam.pool`.

    Returns:
        None if the agent takes it, else what it would log.
    """
    for eni_id, eni in enis.items():
        vpc = eni.get("vpc", {})
        if not vpc.get("primary-cidr"):
            return f"VPC Primary CIDR not set for ENI {eni_id}"
        if not all(vpc.get("cidrs", ())):
            return f"VPC CIDR not set for ENI {eni_id}"
    for address, entry in pool.items():
        eni = enis.get(entry["resource"])
        if eni is None:
            return f"ENI {entry['resource']} not found in status"
        if address not in eni.get("addresses", ()):
            return f"Address {address} not found on ENI {entry['resource']}"
    return None
