"""How commands end: one plain message on standard error, and the exit code that the help promises."""

from __future__ import annotations

import pytest
import typer

from eni_tasks.cli.output import exit_on_error
from eni_tasks.errors import ClusterRefused, EniTasksError, InvalidInput, NodeGone, StateUnavailable
from eni_tasks.services.sentences import sentence


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("'A b' is not the name of a node"), 2),
        (NodeGone("there is no CiliumNode node-1"), 1),
        (StateUnavailable("Redis did not answer: refused"), 1),
        (ClusterRefused("the API server refuses: forbidden"), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_is_its_message_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], error: EniTasksError, code: int
) -> None:
    with pytest.raises(typer.Exit) as ended, exit_on_error():
        raise error
    assert ended.value.exit_code == code
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", f"{error}\n")


def test_a_bug_keeps_its_trace() -> None:
    with pytest.raises(ZeroDivisionError), exit_on_error():
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("EC2 refused it", "EC2 refused it."),
        ("You are not authorized to perform this operation.", "You are not authorized to perform this operation."),
        ("and so on...", "and so on."),
        ("a trailing blank. ", "a trailing blank."),
    ],
    ids=["none", "one", "three", "blank"],
)
def test_a_sentence_has_one_full_stop(text: str, ended: str) -> None:
    assert sentence(text) == ended
