"""The vectors that we do not hold literally, each with the decision that says so and what we do instead.

`ours` replaces those parts of what the vector expects that differ. None: the vector asks for a thing
that this package does not have, so there is nothing to compare.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from vector_world import Vector, cases, load, required

FILES = (
    "needed_ips",
    "excess_ips",
    "ordering",
    "limits_capacity",
    "action_allocate",
    "action_create",
    "action_release",
    "release_handshake",
    "subnet_choice",
    "security_groups",
    "field_mapping",
    "eni_parse",
)


class Superseded(NamedTuple):
    """Why a vector is not held literally, and our values in its place."""

    decision: str
    ours: dict[str, Any] | None


_TABLE = Superseded("limits come from DescribeInstanceTypes only; there is no table and no override", None)
_INDEX_ABSENT = "F3: an absent first-interface-index is 0"
_TOO_FULL = "M-03, B33: a subnet that cannot give an interface an address for pods is not chosen"
_CAP = "F1: the instance's capacity is the cap, so a full node needs nothing"
_NOTHING_FITS = "a capacity of 0 means that nothing fits, never that there is no cap"
_OLD_ANSWER = "F7: an answer given before the address was in excess for the whole delay counts for nothing"
_EXCESS = "F1: nothing below min-allocate + max-above-watermark is excess"

SUPERSEDED: dict[str, Superseded] = {
    # needed_ips, excess_ips
    "needed-1.19-resource-05": Superseded(_NOTHING_FITS, {"needed": 0}),
    "needed-1.19-resource-06": Superseded(_NOTHING_FITS, {"needed": 0}),
    "excess-1.6-peer-02": Superseded(_EXCESS, {"excess": 1}),
    "excess-1.6-edge-02": Superseded(_EXCESS, {"excess": 8}),
    "excess-1.6-edge-12": Superseded(_EXCESS, {"excess": 5}),
    "excess-1.6-edge-14": Superseded(_EXCESS, {"excess": 8}),
    # limits_capacity
    "cap-max-00": Superseded(_INDEX_ABSENT, {"max_allocatable": 27}),
    "cap-stats-02": Superseded(
        "C20-06: the primary takes a slot, and is one address", {"capacity": 435, "available": 1}
    ),
    "cap-limit-string-00": _TABLE,
    "cap-limit-string-02": _TABLE,
    "cap-limit-string-03": _TABLE,
    "cap-limit-string-05": _TABLE,
    "cap-limit-string-06": _TABLE,
    "cap-table-00": _TABLE,
    "cap-table-02": _TABLE,
    "cap-table-03": _TABLE,
    "cap-table-05": _TABLE,
    "cap-table-06": _TABLE,
    "cap-table-08": _TABLE,
    "cap-table-09": _TABLE,
    "cap-table-11": _TABLE,
    "cap-table-12": _TABLE,
    "cap-table-14": _TABLE,
    # action_allocate
    "alloc-1.6-limits-unknown": Superseded("B1: unknown limits mean need and excess 0", {"stats": {"needed": 0}}),
    "alloc-1.6-out-of-enis": Superseded(_CAP, {"stats": {"needed": 0}, "decision": "none"}),
    "alloc-1.6-negative-slots": Superseded(_CAP, {"stats": {"needed": 0}, "decision": "none"}),
    "alloc-1.19-max-allocate-exceeded-by-above": Superseded(
        "F5, M-11: max-allocate is a hard cap",
        {"calls": [{"op": "AssignPrivateIpAddresses", "eni": "eni-0", "count": 6}]},
    ),
    "alloc-1.19-pd-mixed": Superseded(
        "M-07, C20-07: the capacity is computed from the interfaces, and the others take prefixes", {"capacity": 297}
    ),
    "alloc-1.19-pd-subnet-fragmented": Superseded(
        "a subnet with fewer than sixteen free addresses is asked for no prefix",
        {"calls": [{"op": "AssignPrivateIpAddresses", "eni": "eni-0", "count": 9}]},
    ),
    # action_create
    "create-1.6-nano": Superseded(_CAP, {"stats": {"needed": 2}}),
    # action_release
    "release-1.19-pd-blocked-by-singles": Superseded(
        "M-12: the search goes on at the next interface",
        {
            "release": {
                "eni": "eni-1",
                "subnet": "subnet-b",
                "ips": [f"10.1.0.{last}" for last in range(10, 19)],
                "prefixes": [],
            }
        },
    ),
    # release_handshake
    "hs-restart-ready-no-publish": Superseded(
        _OLD_ANSWER,
        {
            "steps": [
                {"release_ips": {"10.0.0.10": "ready-for-release"}},
                {"unassigned": [], "error": False},
                {"unassigned": [], "error": False},
                {"release_ips": {}},
            ]
        },
    ),
    # subnet_choice
    "subnet-tags-1.6-02": Superseded(_TOO_FULL, {"recommended": None}),
    "subnet-tags-1.19-02": Superseded(_TOO_FULL, {"recommended": None}),
    "subnet-ids-1.19-02": Superseded(_TOO_FULL, {"recommended": None}),
    "subnet-ids-1.19-03": Superseded("no ids are no selector: the free choice holds", {"recommended": "subnet-1"}),
    # security_groups
    "sg-1.6-tags-ignored": Superseded("B5: security-group-tags select", {"groups": ["sg-a", "sg-b"]}),
    "sg-1.19-eth0-empty": Superseded("S-09, B75: never an interface without groups", {"groups": None, "error": True}),
    # field_mapping
    "fields-1.19-00": Superseded(
        "D: both generations are read", {"min_allocate": 10, "pre_allocate": 4, "max_above_watermark": 2}
    ),
    # eni_parse
    "parse-1.6-plain": Superseded(
        "F1: primaries are not pooled; secondary VPC blocks and tags are shown to every agent",
        {
            "addresses": ["10.1.0.10", "10.1.0.11"],
            "vpc": {"id": "vpc-1", "primary-cidr": "10.0.0.0/8", "cidrs": ["100.64.0.0/16"]},
            "tags": {"a": "1"},
        },
    ),
    "parse-1.6-no-primary": Superseded("PrivateIpAddresses names the primary, too: the interface is read", None),
    "parse-vpc-1.19": Superseded("the EC2 adapter reads VPCs, and keeps associated blocks only", None),
    "parse-subnet-1.6.0": Superseded("the EC2 adapter reads subnets", None),
}


def ours(vector: Vector) -> dict[str, Any]:
    """Give what we do: what the vector asks for, with our values where a decision differs."""
    superseded = SUPERSEDED.get(vector["id"])
    return required(vector) | ((superseded.ours or {}) if superseded else {})


def held(file: str, **where: object) -> list[Any]:
    """Give the cases of a file that there is something to compare for, as pytest parameters.

    Args:
        file: one of `FILES`.
        where: what the vectors' input must say, such as kind="stats".
    """
    vectors = [v for v in load(file) if v["id"] not in SUPERSEDED or SUPERSEDED[v["id"]].ours is not None]
    return cases([v for v in vectors if all(v["input"].get(key) == value for key, value in where.items())])
