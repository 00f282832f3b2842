"""Numbers with their nouns, as sentences for people need them."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """A number and its noun, such as "1 node" and "2 addresses".

    Args:
        count: how many.
        noun: in the singular; one whose plural ends in "s" or "es".
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}{'es' if noun.endswith('s') else 's'}"
