"""Wrong use of a command ends with its exit code and one sentence on stderr; nothing is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from commands import Commands


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["status", "nobody"], 1, "no CiliumNode of that name is known"),
        (["plan", "nobody", "--json"], 1, "no CiliumNode of that name is known"),
        (["maintain", "nobody"], 1, "no CiliumNode of that name is known"),
        (["publish", "x y"], 2, "'x y' is not the name of a node"),
        (["status", ""], 2, "'' is not the name of a node"),
        (["resync", "--instance", ""], 2, "--instance is empty"),
        (["resync", "--instance", "i-1"], 1, "i-1: no CiliumNode of that name or instance is known"),
        (["events", "--node", "typo"], 1, "node typo: no CiliumNode of that name is known"),
        (["events", "--node", ""], 2, "'' is not the name of a node"),
        (["unlock"], 2, "Give a NODE"),
        (["unlock", "--pass", "sweep"], 2, "No such pass: sweep; there are inventory, instances, orphans."),
        (["pause", "--why", " "], 2, "why is empty"),
        (["plan"], 2, "Missing argument"),
        (["worker", "--queue", "nowhere"], 2, "No such queue: nowhere"),
        (["flower"], 2, "ENI_TASKS_FLOWER_AUTH"),
    ],
    ids=lambda value: "-".join(value).replace(" ", "_") if isinstance(value, list) else None,
)
def test_wrong_use_is_told(cli: Commands, arguments: list[str], code: int, words: str) -> None:
    answer = cli.run(*arguments, code=code)
    assert words in answer.stderr
    assert not any(words in answer.stderr for words in ("Traceback", "Value error", "Error:"))
    assert answer.stdout == ""
    assert [cli.sent(queue) for queue in ("ec2", "apiserver", "resync")] == [[], [], []]


def test_wrong_settings_are_told_at_once(cli: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"ENI_TASKS_RESYNC_SECONDS": "-3", "ENI_TASKS_REDISURL": "x", "ENI_TASKS_CLUSTER": "a b"}
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    answer = cli.run("status", code=2)
    for name in wrong:
        assert name in answer.stderr
