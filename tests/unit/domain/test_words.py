"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from eni_tasks.domain.words import counted


@pytest.mark.parametrize(
    ("count", "noun", "words"),
    [(0, "node", "0 nodes"), (1, "node", "1 node"), (2, "node", "2 nodes"), (1, "address", "1 address"),
     (3, "used address", "3 used addresses")],
)  # fmt: skip
def test_a_number_has_its_noun(count: int, noun: str, words: str) -> None:
    assert counted(count, noun) == words
