"""What the nodes share: infrastructure, limits of types, and the ledger of the subnets' addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from eni_tasks.adapters.state.base import Part, encode, milliseconds
from eni_tasks.adapters.state.connection import Command, translated
from eni_tasks.model.network import Infrastructure, Limits, SubnetId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from eni_tasks.ports.work import Reservation

_decode_infrastructure = msgspec.json.Decoder(Infrastructure).decode
_decode_limits = msgspec.json.Decoder(Limits).decode


class Shared(Part):
    """The common part of the store."""

    _cached: tuple[bytes, Infrastructure] | None = None

    def infrastructure(self) -> Infrastructure | None:
        """See `ports.state.Store.infrastructure`."""
        with translated():
            stamp = cast("bytes | None", self._client.hget(self._keys.infrastructure, "described_at"))
        return self._infrastructure_at(stamp)

    def _infrastructure_at(self, stamp: bytes | None) -> Infrastructure | None:
        """The value of that stamp; decoded once per process, since it can be large and rarely changes."""
        if stamp is None:
            return None
        if self._cached is None or self._cached[0] != stamp:
            with translated():
                values = self._client.hmget(self._keys.infrastructure, ["described_at", "json"])
            current, value = cast("list[bytes | None]", values)
            if current is None or value is None:
                return None
            self._cached = (current, _decode_infrastructure(value))
        return self._cached[1]

    def put_infrastructure(self, infrastructure: Infrastructure) -> None:
        """See `ports.state.Store.put_infrastructure`."""
        self._scripts.run(
            "put_infrastructure",
            [self._keys.infrastructure, self._keys.ledger, self._keys.ledger_entries],
            [encode(infrastructure), milliseconds(infrastructure.described_at), self._settle_ms],
        )

    def limits(self, instance_types: Iterable[str]) -> dict[str, Limits | None]:
        """See `ports.state.Store.limits`."""
        names = list(instance_types)
        if not names:
            return {}
        with translated():
            pipe = self._client.pipeline(transaction=False)
            pipe.hmget(self._keys.limits, names)
            pipe.time()
            values, (whole, micros) = pipe.execute()
        now_ms = whole * 1000 + micros // 1000
        answers = {name: decode_limits(value, now_ms) for name, value in zip(names, values, strict=True)}
        return {name: limits for name, (limits, asked) in answers.items() if asked}

    def put_limits(self, limits: Mapping[str, Limits | None], *, negative_ttl_seconds: float) -> None:
        """See `ports.state.Store.put_limits`."""
        if not limits:
            return
        with translated():
            whole, micros = self._client.time()
            until = int(whole) * 1000 + int(micros) // 1000 + milliseconds(negative_ttl_seconds)
            pipe = self._client.pipeline(transaction=False)
            for name, known in limits.items():
                pipe.hset(self._keys.limits, name, f"-{until}" if known is None else encode(known))
            pipe.execute()

    def settle_call(self, reservation: Reservation, taken: int) -> Command:
        """The command that replaces a reservation by what was really taken (0: nothing)."""
        args = [reservation.subnet_id, reservation.id, reservation.count, taken]
        return self._scripts.call("settle", [self._keys.ledger, self._keys.ledger_entries], args)

    def bench(self, subnet_id: SubnetId, seconds: float) -> None:
        """See `ports.state.Store.bench`."""
        with translated():
            whole, micros = self._client.time()
            until = int(whole) * 1000 + int(micros) // 1000 + milliseconds(seconds)
            self._client.zadd(self._keys.benched, {subnet_id: until})


def decode_limits(value: bytes | None, now_ms: int) -> tuple[Limits | None, bool]:
    """Read one type's entry: the limits, and whether EC2 was asked (lately, if it did not know the type)."""
    if value is None:
        return None, False
    if value.startswith(b"-"):
        return None, int(value[1:]) > now_ms
    return _decode_limits(value), True
