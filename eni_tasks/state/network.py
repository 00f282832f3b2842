"""What the nodes share: infrastructure, limits of instance types, and subnets that have no room or no block.

Every method raises StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from eni_tasks.model.network import Infrastructure, Limits, SubnetId, VpcId
from eni_tasks.state.commands import encode
from eni_tasks.state.connection import DAY_MS, Connection, milliseconds, time_ms
from eni_tasks.state.decoding import decoded, number, seconds, text
from eni_tasks.state.keys import Keys

# For so long interfaces that were left behind are looked for in a VPC whose last node is gone.
VPC_KEPT_MS = DAY_MS

_decode_infrastructure = msgspec.json.Decoder(Infrastructure).decode
_decode_limits = msgspec.json.Decoder(Limits).decode


class NetworkCache:
    """The last description of VPCs, subnets, groups, route tables and instance types.

    Args:
        connection: the way to Redis.
        settle_seconds: EC2's reads may lag this long behind its answers to mutations.
    """

    def __init__(self, connection: Connection, *, settle_seconds: float) -> None:
        self._connection = connection
        self._keys = connection.keys
        self._settle_ms = milliseconds(settle_seconds)
        self._decoded: tuple[bytes, Infrastructure] | None = None

    def infrastructure(self) -> Infrastructure | None:
        """What was last described, or None before the first complete read."""
        (stamp,) = self._connection.send(("HGET", self._keys.infrastructure, "described_at"))
        return self.at(stamp)

    def at(self, stamp: bytes | None) -> Infrastructure | None:
        """The description of a stamp; decoded once per process, since it can be large and rarely changes."""
        if stamp is None:
            return None
        if self._decoded is None or self._decoded[0] != stamp:
            ((current, value),) = self._connection.send(("HMGET", self._keys.infrastructure, "described_at", "json"))
            if current is None or value is None:
                return None
            known = decoded(f"{self._keys.infrastructure} json", value, _decode_infrastructure)
            if known is None:
                return None
            self._decoded = (current, known)
        return self._decoded[1]

    def put_infrastructure(self, infrastructure: Infrastructure) -> None:
        """Replace the description by a later one, and release what the ledger held until then."""
        self._connection.run(
            "put_infrastructure",
            [self._keys.infrastructure, self._keys.ledger, self._keys.ledger_entries],
            [encode(infrastructure), milliseconds(infrastructure.described_at), self._settle_ms],
        )
        of_nodes = infrastructure.vpcs.keys() - set(infrastructure.other_vpc_ids)
        if of_nodes:
            now_ms = self._connection.now_ms()
            words = [word for vpc_id in sorted(of_nodes) for word in (now_ms, vpc_id)]
            self._connection.send(
                ("ZADD", self._keys.vpcs, *words),
                ("ZREMRANGEBYSCORE", self._keys.vpcs, "-inf", now_ms - VPC_KEPT_MS),
            )

    def recent_vpcs(self) -> list[VpcId]:
        """The VPCs in which there are nodes, or were until a day ago."""
        now_ms = self._connection.now_ms()
        (names,) = self._connection.send(("ZRANGE", self._keys.vpcs, now_ms - VPC_KEPT_MS, "+inf", "BYSCORE"))
        return [VpcId(text(name)) for name in names]

    def limits(self, instance_types: Iterable[str]) -> dict[str, Limits | None]:
        """Known limits; None for a type that EC2 did not know lately; missing when it was never asked for."""
        names = list(instance_types)
        if not names:
            return {}
        values, time = self._connection.send(("HMGET", self._keys.limits, *names), ("TIME",))
        answers = {
            name: decode_limits(self._keys, name, value, time_ms(time))
            for name, value in zip(names, values, strict=True)
        }
        return {name: limits for name, (limits, requested) in answers.items() if requested}

    def put_limits(self, limits: Mapping[str, Limits | None], *, negative_ttl_seconds: float) -> None:
        """Store limits; a None is valid for `negative_ttl_seconds`."""
        if limits:
            until = self._connection.now_ms() + milliseconds(negative_ttl_seconds)
            entries = {name: f"-{until}" if known is None else encode(known) for name, known in limits.items()}
            self._connection.send(("HSET", self._keys.limits, *(word for pair in entries.items() for word in pair)))

    def cool_down(self, subnet_id: SubnetId, seconds: float) -> None:
        """Let no node choose a subnet for a while: it reported that it is full."""
        until = self._connection.now_ms() + milliseconds(seconds)
        self._connection.send(("ZADD", self._keys.cooldowns, until, subnet_id))

    def note_no_prefix(self, subnet_id: SubnetId, *, first_seconds: float, longest_seconds: float) -> None:
        """Let no node ask a subnet for a /28 prefix for a while: it reported that it has none.

        Args:
            subnet_id: the subnet.
            first_seconds: the wait; it doubles while the subnet reports the same again soon after.
            longest_seconds: the longest wait.
        """
        waits = (milliseconds(first_seconds), milliseconds(longest_seconds))
        self._connection.run("note_no_prefix", [self._keys.no_prefix], [subnet_id, *waits, DAY_MS])


def without_prefix(keys: Keys, entries: Mapping[bytes, bytes], now: float) -> dict[str, float]:
    """Decode which subnets are not to be asked for a /28 prefix now, and until when; times in Redis seconds."""
    ends = {text(name): seconds(f"{keys.no_prefix} {text(name)}", at.split(b" ")[0]) for name, at in entries.items()}
    return {name: end for name, end in ends.items() if end > now}


def decode_limits(keys: Keys, instance_type: str, value: bytes | None, now_ms: int) -> tuple[Limits | None, bool]:
    """Decode one type's entry: the limits, and whether EC2 was asked (lately, if it did not know the type)."""
    key = f"{keys.limits} {instance_type}"
    if value is not None and value.startswith(b"-"):
        return None, number(key, value[1:]) > now_ms
    known = decoded(key, value, _decode_limits)
    return known, known is not None


def decode_ledger(keys: Keys, entries: Mapping[bytes, bytes]) -> dict[str, int]:
    """Decode the ledger: addresses held, by subnet."""
    return {text(subnet): int(number(f"{keys.ledger} {text(subnet)}", count)) for subnet, count in entries.items()}
