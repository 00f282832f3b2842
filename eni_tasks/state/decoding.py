"""Decoding of what Redis holds: a value that can't be decoded counts as unknown, and is named in the log once.

Another version, a person or a fault may have written it. An error would stop everything that is read together with
it. The next write of the same item replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from eni_tasks.observability.logs import logger

T = TypeVar("T")

NAMED_COUNT = 10_000  # more are forgotten, and may be named again
EXCERPT_BYTES = 100
LARGEST_NUMBER = 2.0**63

# The same in scripts/lib/number.lua: a script and this process must read the same number.
_NUMBER = re.compile(rb"-?\d[\d.e+-]*")

_named: dict[str, bytes] = {}  # per key of Redis (with field) the value that was named last


def decoded(key: str, value: bytes | None, decode: Callable[[bytes], T]) -> T | None:
    """Decode a value.

    Args:
        key: where it is, for the log: the key, and the field if there is one.
        value: None if it is absent.
        decode: raises ValueError or a msgspec error for a value that is none.

    Returns:
        The decoded value; None if it is absent or can't be decoded.
    """
    if value is None:
        return None
    try:
        return decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        if _named.get(key) != value:
            if len(_named) >= NAMED_COUNT:
                _named.clear()
            _named[key] = value
            excerpt = text(value[:EXCERPT_BYTES])
            logger().error("state_value_unreadable", key=key, error=str(error), value=excerpt)
        return None


def number(key: str, value: bytes | None) -> float:
    """A number as Redis keeps it; absent, empty or unreadable is 0."""
    return decoded(key, value or None, _number) or 0.0


def seconds(key: str, value: bytes | None) -> float:
    """A time as Redis keeps it, in seconds; absent, empty or unreadable is 0."""
    return int(number(key, value)) / 1000


def text(value: bytes) -> str:
    """A name or a sentence as Redis keeps it; bytes that are no UTF-8 are shown as escapes."""
    return value.decode(errors="backslashreplace")


def prose(value: bytes | None) -> str:
    """A sentence for people as Redis keeps it; absent is ""."""
    return text(value) if value else ""


def _number(value: bytes) -> float:
    if not _NUMBER.fullmatch(value) or not abs(found := float(value)) < LARGEST_NUMBER:
        raise ValueError("not a number")
    return found


def scored(flat: Sequence[bytes]) -> list[tuple[bytes, float]]:
    """Pairs of member and score, from the flat list that Redis answers WITHSCORES."""
    return [(member, float(score)) for member, score in zip(flat[::2], flat[1::2], strict=True)]
