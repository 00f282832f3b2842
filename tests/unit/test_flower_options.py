"""What `eni-tasks flower` refuses before anything starts."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from eni_tasks.cli.commands import main


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
