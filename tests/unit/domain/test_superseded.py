"""The table of exceptions stays honest: only vectors that exist, only where we really differ."""

from superseded import FILES, SUPERSEDED
from vector_world import load, required


def test_only_vectors_that_exist():
    assert SUPERSEDED.keys() <= {vector["id"] for file in FILES for vector in load(file)}


def test_our_value_differs_from_the_vectors():
    for vector in (vector for file in FILES for vector in load(file)):
        superseded = SUPERSEDED.get(vector["id"])
        if superseded and superseded.ours:
            asked = required(vector)
            shown = asked["eni"] if isinstance(asked.get("eni"), dict) else asked
            assert any(shown.get(key) != value for key, value in superseded.ours.items()), vector["id"]
