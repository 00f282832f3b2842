"""The query protocol: a form with dotted names in, values and lists out.

`TagSpecification.1.Tag.2.Key=x` reads as a tree. A parameter that this EC2 does not serve is refused instead
of ignored, so that no client relies on something that has no effect here.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from eni_tasks.sandbox.ec2.errors import Ec2Error, invalid_value, missing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_LOGGED_CHARACTERS = 200
_NOT_LOGGED = {"Action", "Version"}
_NOT_NARROWING = {"Action", "Version", "DryRun"}


class Position(NamedTuple):
    """Where a page begins: after the record with this serial; `page` is its number."""

    after: int
    page: int


class Query:
    """One request's parameters.

    Args:
        tree: the parameters by name; a list is a tree of its numbers.
    """

    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = tree

    @classmethod
    def parse(cls, body: str) -> Query:
        """Returns the parameters of a form."""
        tree: dict[str, Any] = {}
        for name, value in parse_qsl(body, keep_blank_values=True):
            *path, leaf = name.split(".")
            branch = tree
            for step in path:
                branch = branch.setdefault(step, {})
            branch[leaf] = value
        return cls(tree)

    def only(self, names: Collection[str]) -> None:
        """Refuse parameters other than these."""
        for name in self._tree:
            if name not in names:
                raise Ec2Error(
                    "UnknownParameter", f"The parameter {name} is not recognized (or not served by the sandbox)"
                )

    def has(self, name: str) -> bool:
        """Whether the parameter was given."""
        return name in self._tree

    def text(self, name: str, default: str | None = None) -> str:
        """Returns a text; without a default, refuses a request that lacks it."""
        value = self._tree.get(name, default)
        if value is None or (value == "" and default is None):
            raise missing(name[0].lower() + name[1:])
        if not isinstance(value, str):
            raise invalid_value(f"Value for parameter {name} is invalid.")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Returns a number; without a default, refuses a request that lacks it."""
        value = self.text(name, None if default is None else str(default))
        try:
            return int(value)
        except ValueError:
            raise invalid_value(f"Value ({value}) for parameter {name} is invalid.") from None

    def flag(self, name: str) -> bool:
        """Returns a boolean, false by default."""
        return self.text(name, "false").lower() == "true"

    def struct(self, name: str) -> Query:
        """Returns a structure's own parameters, empty if it was not given."""
        return Query(self._tree.get(name, {}))

    def texts(self, name: str) -> list[str]:
        """Returns a list of texts, in the order of their numbers."""
        numbered = self._tree.get(name, {})
        if not isinstance(numbered, dict):
            raise invalid_value(f"Value ({numbered}) for parameter {name} is invalid.")
        return [value for _, value in sorted(numbered.items(), key=lambda item: int(item[0]))]

    def structs(self, name: str) -> list[Query]:
        """Returns a list of structures, in the order of their numbers."""
        return [Query(branch) for branch in self.texts(name)]  # type: ignore[arg-type]

    def subject(self) -> dict[str, str]:
        """Returns what the call log keeps: the values by the first part of their names, shortened."""
        kept = {name: ",".join(_leaves(value)) for name, value in self._tree.items() if name not in _NOT_LOGGED}
        return {name: value[:_LOGGED_CHARACTERS] for name, value in kept.items()}

    def values(self) -> set[str]:
        """Returns every value that was given, whatever its name."""
        return set(_leaves(self._tree))

    def narrowed(self) -> bool:
        """Whether anything limits what a read answers: a filter, ids or a page size."""
        return bool(self._tree.keys() - _NOT_NARROWING)

    def position(self) -> Position:
        """Returns where the page begins that a listing asks for.

        Raises:
            Ec2Error: a token that is not one of ours.
        """
        token = self.text("NextToken", "")
        if not token:
            return Position(0, 1)
        try:
            word, after, page = base64.urlsafe_b64decode(token).decode().split(":")
            if word == "after":
                return Position(int(after), int(page))
        except (binascii.Error, UnicodeDecodeError, ValueError):
            pass
        raise Ec2Error("InvalidNextToken", "The specified NextToken is not valid.")

    def page_number(self) -> int:
        """Returns the number of the page that a listing asks for; 1 is the first."""
        return self.position().page


def token_of(position: Position) -> str:
    """Returns the token that leads to a page.

    It holds the serial of the last record before the page. So the pages of a listing neither repeat nor skip a
    record that exists throughout, whatever is created and deleted meanwhile.
    """
    return base64.urlsafe_b64encode(f"after:{position.after}:{position.page}".encode()).decode()


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    else:
        yield value
