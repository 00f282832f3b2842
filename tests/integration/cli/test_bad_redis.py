"""Commands where they are needed most: Redis is full, is a replica, refuses us, or is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import redis_servers

if TYPE_CHECKING:
    from commands import Commands

PASSWORD = "s3cr/et#wi?th@all:of%it"  # noqa: S105 - what must not be shown
ENCODED = "s3cr%2Fet%23wi%3Fth%40all%3Aof%25it"
SERVERS: dict[str, tuple[str, ...]] = {
    "over maxmemory": ("--maxmemory", "1"),
    "a replica": ("--replicaof", "127.0.0.1", "1"),
    "no replica to write to": ("--min-replicas-to-write", "1"),
    "another password": (),
    "no such database": (),
    "not there": (),
}
# Commands and whether they only look: with data to read they may succeed.
COMMANDS = {
    "status": True,
    "status --json": True,
    "status node": True,
    "plan node": True,
    "events": True,
    "doctor": False,
    "doctor --json": False,
    "maintain node": False,
    "publish node": False,
    "resync": False,
    "orphans --dry-run": False,
    "pause --why why": False,
    "resume": True,
    "unlock node": False,
}


@pytest.fixture(autouse=True)
def _quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eni_tasks.tasks.messages.CeleryWorkers.__init__.__defaults__", (0.1,))


@pytest.mark.parametrize("kind", SERVERS)
def test_c10_each_command_says_what_is_wrong_and_no_password(
    cli: Commands, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    password = "another" if kind == "another password" else PASSWORD
    with redis_servers.running(options=("--requirepass", password, *SERVERS[kind])) as url:
        port = 1 if kind == "not there" else int(url.rsplit(":", 1)[1].split("/")[0])
        database = 4711 if kind == "no such database" else 0
        monkeypatch.setenv("ENI_TASKS_REDIS_URL", f"redis://:{ENCODED}@127.0.0.1:{port}/{database}")
        for command, looks in COMMANDS.items():
            result = cli.run(*command.split(), code=None)
            said = result.stdout + result.stderr
            assert result.exit_code == 1 or (looks and result.exit_code == 0), f"{command}: {said}"
            assert said.strip(), command
            assert "Traceback" not in said, command
            assert not any(part in said for part in ("s3cr", ENCODED, PASSWORD, "all:of")), f"{command}: {said}"


def test_c10_doctor_names_a_full_server_and_a_replica(cli: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    for options, what in ((("--maxmemory", "1"), "memory"), (("--replicaof", "127.0.0.1", "1"), "mode")):
        with redis_servers.running(options=options) as url:
            monkeypatch.setenv("ENI_TASKS_REDIS_URL", url)
            findings = cli.json("doctor", code=1)["findings"]
            assert what in {each["what"] for each in findings if each["verdict"] == "trouble"}


def test_c10_settings_shows_no_part_of_a_password(cli: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENI_TASKS_REDIS_URL", f"redis://me:{ENCODED}@h:6379/0")
    assert "ENI_TASKS_REDIS_URL='redis://me:****@h:6379/0'" in cli("settings")
    monkeypatch.setenv("ENI_TASKS_REDIS_URL", f"redis://me:{PASSWORD}@h:6379/0")
    for command in (
        "settings",
        "status",
        "doctor",
        "pause --why why",
        "worker --queue ec2",
        "watcher",
        "flower --no-auth",
    ):
        result = cli.run(*command.split(), code=2)
        assert "percent-encoded" in result.stderr, command
        assert "s3cr" not in result.stdout + result.stderr, command
