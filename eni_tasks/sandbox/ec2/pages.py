"""EC2's pages: MaxResults with its range, and opaque tokens that go on where a page ended."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, TypeVar

from eni_tasks.sandbox.ec2.records import Record
from eni_tasks.sandbox.ec2.refusals import Refused, invalid_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eni_tasks.sandbox.ec2.query import Query

SMALLEST = 5
R = TypeVar("R", bound=Record)


def page(query: Query, records: Sequence[R], largest: int) -> tuple[Sequence[R], str]:
    """Cut the page that a request asks for.

    The token holds the last record's serial: a page neither repeats nor skips a record that lives
    through the whole listing, whatever comes and goes in between.

    Args:
        query: the request.
        records: all that match, in the order of their serials.
        largest: the most that this action takes for MaxResults.

    Returns:
        The page, and the token of the next one or "".

    Raises:
        Refused: MaxResults out of range, or a token that is none of ours.
    """
    token = query.text("NextToken", "")
    if token:
        after = _read_token(token)
        records = [record for record in records if record.serial > after]
    if not query.has("MaxResults"):
        return records, ""
    size = query.integer("MaxResults")
    if not SMALLEST <= size <= largest:
        bound = f"greater than or equal to {SMALLEST}" if size < SMALLEST else f"less than or equal to {largest}"
        raise invalid_value(f"Value ( {size} ) for parameter maxResults is invalid. Expecting a value {bound}.")
    if len(records) <= size:
        return records, ""
    return records[:size], _token(records[size - 1].serial)


def _token(serial: int) -> str:
    return base64.urlsafe_b64encode(f"after:{serial}".encode()).decode()


def _read_token(token: str) -> int:
    try:
        word, _, serial = base64.urlsafe_b64decode(token).decode().partition(":")
        if word == "after":
            return int(serial)
    except (binascii.Error, UnicodeDecodeError, ValueError):
        pass
    raise Refused("InvalidNextToken", "The specified NextToken is not valid.")
