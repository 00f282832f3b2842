"""The values of settings as text: how they are written in variables, shown with their secrets masked, and refused."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def as_text(value: object) -> str:
    """A setting in the form in which its variable has it."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        texts = ((key, ":".join(map(as_text, v)) if isinstance(v, tuple) else v) for key, v in value.items())
        return ",".join(f"{key}={text}" for key, text in texts)
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def masked_url(url: str) -> str:
    """A URL without the password that it holds."""
    parts = urlsplit(url)
    given, at, host = parts.netloc.rpartition("@")
    if not at:
        return url
    user, colon, _ = given.partition(":")
    # A user without a password may be a password that was put into the wrong place.
    return urlunsplit(parts._replace(netloc=f"{user}:****@{host}" if colon else f"****@{host}"))


def bucket(action: str, text: str) -> tuple[float, float]:
    """Read a rate limit, such as "50:5": the size of a token bucket, and the tokens added per second.

    Args:
        action: whose, for the message.
        text: as it is written.

    Raises:
        ValueError: it is none.
    """
    size, _, refill = text.partition(":")
    try:
        read = (float(size), float(refill))
    except ValueError:
        read = (math.nan, math.nan)
    # A bucket that never holds a whole token, or never refills, would stop the action for good.
    if not all(0 <= number < math.inf for number in read) or (read[0] > 0 and (read[0] < 1 or read[1] == 0)):
        raise ValueError(f"{action}: {text!r} is not size:refill, such as 50:5")
    return read


def pairs(text: str) -> list[tuple[str, str]]:
    """Read "key=value,key2=value2".

    Raises:
        ValueError: a part is no pair.
    """
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{part!r} is not key=value")
        found.append((key.strip(), value.strip()))
    return found


def problem(error: ErrorDetails) -> str:
    """What is wrong with a value, in words of the environment instead of Python's types."""
    kind, bounds = error["type"], error.get("ctx", {})
    if kind == "value_error":
        return str(bounds["error"])
    if kind.startswith(("float_", "int_", "finite_")):
        return f"{error['input']} is not a {'whole ' if kind.startswith('int_') else ''}number"
    if kind.startswith("bool_"):
        return f"{error['input']} is neither true nor false"
    if kind == "literal_error":
        return f"{error['input']} is none of {bounds['expected'].replace(chr(39), '')}"
    return error["msg"].replace("Input should be", f"{error['input']} must be")
