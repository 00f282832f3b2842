"""A real Redis with the bundled one's arguments does what the chart says; a private CA, given its way, is enough."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
import redis
from certificates import write_certificates
from chart import VALUE_SETS, container, environment, objects, workloads
from processes_under_test import ROOT, clean
from redis_servers import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PASSWORD = "generated"  # noqa: S105 - of a server that lives for a second


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., redis.Redis]]:
    """Starts redis-server with these arguments; the wheel's server has no TLS, and isn't what the chart runs."""
    program = shutil.which("redis-server")
    if program is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs redis-server")
    started = []

    def start(arguments: list[str], client: redis.Redis) -> redis.Redis:
        process = subprocess.Popen([program, *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL)
        started.append(process)
        deadline = time.monotonic() + 20
        while True:
            try:
                client.ping()
            except redis.ConnectionError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
            else:
                return client

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_the_bundled_one_keeps_its_keys_and_asks_for_the_password(serve, tmp_path):
    given = container(workloads(objects({}))["redis"])
    arguments = [a.replace("$(REDIS_PASSWORD)", PASSWORD).replace("/data", str(tmp_path)) for a in given["args"]]
    port = free_port()
    with redis.Redis("127.0.0.1", port, password=PASSWORD) as client:
        serve([*arguments, "--port", str(port), "--bind", "127.0.0.1"], client)
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("maxmemory") == {"maxmemory": str(256 << 20)}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("save") == {"save": ""}
    with redis.Redis("127.0.0.1", port) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    assert (tmp_path / "appendonlydir").is_dir()

    ready = given["readinessProbe"]["exec"]["command"]
    asking = [part.replace("redis-cli", f"redis-cli -p {port}") for part in ready]
    for password, well in ((PASSWORD, True), ("wrong", False)):
        variables = {**os.environ, "REDISCLI_AUTH": password}
        assert (subprocess.run(asking, env=variables, capture_output=True, check=False).returncode == 0) is well


def test_a_private_ca_in_the_charts_way_is_enough(serve, tmp_path):
    """For our own client and for Celery's: the command enqueues with one and sends with the other."""
    write_certificates(tmp_path, "redis")
    port = free_port()
    arguments = ["--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1", "--requirepass", PASSWORD]
    arguments += ["--tls-cert-file", "server.crt", "--tls-key-file", "server.key", "--tls-ca-cert-file", "ca.crt"]
    arguments += ["--tls-auth-clients", "no", "--save", ""]
    with redis.Redis("127.0.0.1", port, ssl=True, ssl_ca_certs=str(tmp_path / "ca.crt"), password=PASSWORD) as client:
        serve(arguments, client)

    variables = environment(objects(VALUE_SETS["external-redis"]), "watcher")
    assert variables["SSL_CERT_FILE"] == "/etc/eni-tasks/redis-ca/ca.crt"
    for ca, well in (("ca.crt", True), ("server.crt", False)):
        answer = subprocess.run(
            [sys.executable, "-c", "from eni_tasks.cli.commands import main; main()", "resync"],
            env=clean(
                {
                    "ENI_TASKS_REDIS_URL": f"rediss://:{PASSWORD}@127.0.0.1:{port}/0",
                    "SSL_CERT_FILE": str(tmp_path / ca),
                }
            ),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (answer.returncode == 0) is well, answer.stderr
