"""What `eni-tasks flower` refuses before anything starts."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from eni_tasks.cli.commands import main
from eni_tasks.cli.flower import receive_events


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        pytest.param([], {}, "set ENI_TASKS_FLOWER_AUTH=user:password, or say --no-auth", id="nothing said"),
        pytest.param(["--no-auth"], {"ENI_TASKS_FLOWER_AUTH": "a:b"}, "say which", id="both said"),
        pytest.param(["--auth", "secret"], {}, "must be user:password", id="no user"),
        pytest.param(["--auth", "me:"], {}, "must be user:password", id="no password"),
        pytest.param([], {"ENI_TASKS_FLOWER_AUTH": ":secret"}, "must be user:password", id="no user, as a variable"),
        pytest.param(["--auth", "me:schlüssel"], {}, "in ASCII", id="a password that Flower would stumble over"),
        pytest.param(["--no-auth", "--url-prefix", "http://h/f"], {}, "is not a path", id="prefix with a host"),
        pytest.param(["--no-auth", "--url-prefix", "/f.*"], {}, "is not a path", id="prefix with a pattern"),
        pytest.param(["--no-auth"], {"ENI_TASKS_FLOWER_URL_PREFIX": "a b"}, "is not a path", id="prefix with a blank"),
        pytest.param(["--no-auth", "--max-tasks", "5"], {}, "--max-tasks", id="too short a memory"),
    ],
)
def test_a_wrong_option_ends_it_at_once(arguments: list[str], environment: dict[str, str], words: str) -> None:
    answer = CliRunner().invoke(main, ["flower", *arguments], env=environment)
    assert answer.exit_code == 2
    assert words in answer.stderr
    assert "secret" not in answer.stderr.replace("must be user:password", "")


def test_while_redis_is_away_it_tries_again_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def no_connection() -> None:
        if len(pauses) == 8:
            raise SystemExit
        raise ConnectionError("refused")

    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(SystemExit):
        receive_events(SimpleNamespace(capp=SimpleNamespace(connection=no_connection)))
    assert pauses == [1, 2, 4, 8, 10, 10, 10, 10]
