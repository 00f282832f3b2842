"""Records by id, twice: as they are, and as reads show them, which may lag behind.

EC2's reads are eventually consistent. A write here changes the truth at once and is shown after the
lag; writes are shown in the order in which they were made, so a read always shows some earlier truth.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from eni_tasks.sandbox.ec2.records import Record

R = TypeVar("R", bound="Record")


class Index(Generic[R]):
    """Records by id and, for quick look-up, by one group that each belongs to.

    Args:
        group_of: names the group of a record, "" for none.
    """

    def __init__(self, group_of: Callable[[R], str]) -> None:
        self._group_of = group_of
        self._groups: dict[str, dict[str, R]] = {}
        self.by_id: dict[str, R] = {}

    def put(self, identifier: str, record: R | None) -> None:
        """Add, replace or (None) remove a record."""
        old = self.by_id.get(identifier)
        if old is not None:
            group = self._group_of(old)
            self._groups[group].pop(identifier)
            if not self._groups[group]:
                del self._groups[group]
        if record is None:
            self.by_id.pop(identifier, None)
            return
        self.by_id[identifier] = record
        self._groups.setdefault(self._group_of(record), {})[identifier] = record

    def group(self, name: str) -> list[R]:
        """Returns the records of a group."""
        return list(self._groups.get(name, {}).values())


class Table(Generic[R]):
    """The truth about one kind of thing, and what reads show of it.

    Args:
        group_of: names the group of a record, "" for none.
    """

    def __init__(self, group_of: Callable[[R], str] = lambda _: "") -> None:
        self.truth: Index[R] = Index(group_of)
        self.shown: Index[R] = Index(group_of)
        self._late: deque[tuple[float, str, R | None]] = deque()

    def put(self, identifier: str, record: R | None, *, shown_at: float) -> None:
        """Write a record (None: remove it) now, for reads to show from `shown_at` on."""
        self.truth.put(identifier, record)
        self._late.append((shown_at, identifier, record))

    def show(self, now: float) -> None:
        """Let reads show what is due; an entry waits for those written before it."""
        while self._late and self._late[0][0] <= now:
            _, identifier, record = self._late.popleft()
            self.shown.put(identifier, record)
