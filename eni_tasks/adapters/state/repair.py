"""What people need besides the work itself: `ports.repair` on Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from eni_tasks.adapters.state.connection import Scripts, translated
from eni_tasks.ports.repair import Struck
from eni_tasks.ports.state import Event
from eni_tasks.ports.work import WorkKind

if TYPE_CHECKING:
    import redis

    from eni_tasks.adapters.state.keys import Keys
    from eni_tasks.model.network import NodeName

PORTION = 1000  # events read at once while one node's are looked for


class RedisRepairs:
    """Ending claims, striking out journal entries, looking back.

    Args:
        client: the connection.
        scripts: the operations.
        keys: names of the deployment.
    """

    def __init__(self, client: redis.Redis, scripts: Scripts, keys: Keys) -> None:
        self._client = client
        self._scripts = scripts
        self._keys = keys

    def end_claim(self, kind: WorkKind, name: NodeName) -> float | None:
        """See `ports.repair.Repairs.end_claim`."""
        left_ms = self._scripts.run("end_claim", [self._keys.work(kind, name), self._keys.pending(kind)], [name])
        return None if left_ms is None else int(left_ms) / 1000

    def strike_out(self, name: NodeName, entry: bytes) -> Struck:
        """See `ports.repair.Repairs.strike_out`."""
        keys = [self._keys.work(WorkKind.MAINTAIN, name), self._keys.journal]
        return Struck(self._scripts.run("strike_out", keys, [name, entry]).decode())

    def latest(self, node: str, limit: int) -> list[Event]:
        """See `ports.repair.History.latest`."""
        found: list[Event] = []
        before = "+"
        while len(found) < limit:
            count = PORTION if node else min(PORTION, limit)
            with translated():
                entries = self._client.xrevrange(self._keys.events, max=before, count=count)
            events = [read_event(*entry) for entry in cast("list[tuple[bytes, dict[bytes, bytes]]]", entries)]
            found += [event for event in events if not node or event.fields.get("node") == node]
            if len(events) < count:
                break
            before = f"({events[-1].id}"
        return found[:limit][::-1]


def read_event(entry_id: bytes, values: dict[bytes, bytes]) -> Event:
    """Read one entry of the stream."""
    fields = {key.decode(): value.decode() for key, value in values.items()}
    return Event(id=entry_id.decode(), what=fields.pop("what", ""), fields=fields)
