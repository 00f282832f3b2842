"""Reads fields of foreign JSON by kind, and says exactly which field of which object is wrong.

Absent and null read the same: as empty. What the fields mean is the business of `cilium_node` and
`interface_item`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eni_tasks.errors import InvalidInput

# No instance, subnet or account comes near; beyond it is a mistake, not a wish.
_LARGEST_COUNT = 2**31 - 1


class Fields:
    """A mapping of a foreign object, with its path for messages.

    Args:
        value: the mapping, or None for an absent one.
        owner: the object that the messages name.
        path: where in the object `value` stands, "" for the top.

    Raises:
        InvalidInput: `value` is no mapping.
    """

    def __init__(self, value: object, owner: str, path: str = "") -> None:
        if value is not None and not isinstance(value, Mapping):
            raise InvalidInput(f"{owner}: {path or 'the object'} is {value!r}, not a map: check the object.")
        self._value: Mapping[str, Any] = value or {}
        self._owner = owner
        self._path = path

    def refuse(self, key: str, problem: str) -> InvalidInput:
        """Build the error for a field, for the caller to raise."""
        return InvalidInput(f"{self._owner}: {self._at(key)} {problem}: check the object.")

    def fields(self, key: str) -> Fields:
        """Read a nested mapping as fields."""
        return Fields(self._value.get(key), self._owner, self._at(key))

    def each(self, key: str) -> Iterator[Fields]:
        """Read a list of mappings, one by one."""
        for position, item in enumerate(self._list(key)):
            yield Fields(item, self._owner, f"{self._at(key)}[{position}]")

    def mapping(self, key: str) -> Mapping[str, Any]:
        """Read a mapping as it is."""
        return self.fields(key)._value  # noqa: SLF001 - the same class

    def string(self, key: str, default: str = "") -> str:
        """Read a string."""
        value = self._value.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.refuse(key, f"is {value!r}, not a string")
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Read a boolean."""
        value = self._value.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(key, f"is {value!r}, not true or false")
        return value

    def count(self, key: str, *, negative: bool = False) -> int:
        """Read a whole number; 0 if absent, below 0 only where `negative` allows it."""
        value = self._value.get(key)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse(key, f"is {value!r}, not a whole number")
        if (value < 0 and not negative) or abs(value) > _LARGEST_COUNT:
            raise self.refuse(key, f"is {value}, which no node can mean")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        """Read a list of strings."""
        values = self._list(key)
        if not all(isinstance(value, str) for value in values):
            raise self.refuse(key, f"is {values!r}, not a list of strings")
        return tuple(values)

    def string_map(self, key: str) -> dict[str, str]:
        """Read a mapping of strings to strings."""
        values = self.mapping(key)
        if not all(isinstance(value, str) for value in values.values()):
            raise self.refuse(key, f"is {dict(values)!r}, not a map of strings")
        return dict(values)

    def _list(self, key: str) -> list[Any]:
        value = self._value.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.refuse(key, f"is {value!r}, not a list")
        return value

    def _at(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key
