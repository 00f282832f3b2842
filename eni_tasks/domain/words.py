"""Numbers with their nouns, as sentences for people need them."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """A number and its noun, such as "1 node" and "2 addresses".

    Args:
        count: how many.
        noun: in the singular; its plural ends in "s", or in "es" after "s" and "x".
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'x')) else 's'}"
