"""Redis behind TLS with a CA of one's own: one URL serves our client and Celery's, and both verify."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import redis
import redis_servers
from certificates import write_certificates
from flower_under_test import AUTH, flower
from processes_under_test import ROOT, clean, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSWORD = "p@ss/word"  # noqa: S105 - of a server that lives for a minute
QUOTED = "p%40ss%2Fword"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """A Redis that speaks TLS alone and wants a password."""
    program = redis_servers.program("redis")
    if program is None:
        pytest.skip("redis-server is not installed; Valkey's wheel has no TLS")
    write_certificates(folder, "redis")
    port = redis_servers.free_port()
    command = [program, "--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1", "--requirepass", PASSWORD]
    command += ["--tls-cert-file", "server.crt", "--tls-key-file", "server.key", "--tls-ca-cert-file", "ca.crt"]
    command += ["--tls-auth-clients", "no", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while not _answers(port, folder / "ca.crt"):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield f"rediss://:{QUOTED}@127.0.0.1:{port}/0?ssl_ca_certs={folder / 'ca.crt'}"
    finally:
        process.kill()
        process.wait()


def _answers(port: int, ca: Path) -> bool:
    with redis.Redis("127.0.0.1", port, ssl=True, ssl_ca_certs=str(ca), password=PASSWORD) as client:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False


def cli(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from eni_tasks.cli.commands import main; main()", *arguments]
    environment = clean({"ENI_TASKS_REDIS_URL": url})
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_command_worker_and_flower_work_with_the_ca_in_the_url(url: str, tmp_path: Path) -> None:
    answer = cli(url, "resync", "--json")
    assert answer.returncode == 0, answer.stderr

    with (
        flower(tmp_path, ENI_TASKS_REDIS_URL=url, ENI_TASKS_FLOWER_AUTH=AUTH) as window,
    ):
        queues = {queue["name"]: queue["messages"] for queue in window.json("/api/queues/length")["active_queues"]}
        assert queues == {"ec2": 0, "apiserver": 0, "resync": 1}
        with running(
            tmp_path / "worker.log", "workers.resync", ENI_TASKS_REDIS_URL=url, AWS_REGION="eu-west-1"
        ) as worker:

            def served() -> bool:
                return any(task["state"] == "SUCCESS" for task in window.json("/api/tasks").values())

            worker.until(served, "a task served")
        said = worker.said + window.process.said
    assert PASSWORD not in said
    assert QUOTED not in said
    assert {json.loads(line)["level"] for line in said.splitlines()} <= {"info", "warning"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(r"\?.*", "", "certificate verify failed", id="no CA named"),
        pytest.param(
            r"127\.0\.0\.1",
            "localhost",
            "certificate is not valid for 'localhost'",
            id="another name",
        ),
        pytest.param(r"ca\.crt", "none.crt", "none.crt", id="a file that is not there"),
        pytest.param("rediss://", "redis://", "no such option", id="options without TLS"),
    ],
)
def test_a_server_that_cannot_be_verified_gets_nothing(url: str, old: str, new: str, words: str) -> None:
    answer = cli(re.sub(old, new, url), "resync")
    assert answer.returncode in {1, 2}
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr
    assert QUOTED not in answer.stderr


def test_celery_verifies_as_our_own_client_does(url: str, tmp_path: Path) -> None:
    stranger = urlsplit(url)._replace(query="").geturl()
    with running(
        tmp_path / "worker.log", "workers.resync", ENI_TASKS_REDIS_URL=stranger, AWS_REGION="eu-west-1"
    ) as worker:
        worker.until(lambda: "CERTIFICATE_VERIFY_FAILED" in worker.said, "Celery's refusal")
        assert "ready" not in worker.said
