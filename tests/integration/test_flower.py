"""Flower as an operator starts it: the password guards it, nothing foreign shapes it, its memory has a bound."""

from __future__ import annotations

import base64
import json
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import redis
import redis_servers
from flower_under_test import AUTH, Flower, flower
from processes_under_test import running as process
from pydantic import SecretStr

from eni_tasks.settings import Settings
from eni_tasks.tasks.app import make_app

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "/tools/flower"
PATHS = ["/", "/workers", "/tasks", "/broker", "/api/workers", "/api/tasks", "/api/queues/length", "/api/task/types"]


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with redis_servers.running() as url:
        yield url


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Flower]:
    """Flower with a password and a prefix, in surroundings that would lead it astray."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "flowerconfig.py").write_text("open('was-run', 'w').close()\nbasic_auth = ['who:ever']\n")
    surroundings = {
        "FLOWER_PORT": "tcp://10.0.0.1:5555",  # as Kubernetes says it for a service named flower
        "FLOWER_UNAUTHENTICATED_API": "true",
        "ENI_TASKS_REDIS_URL": redis_url,
        "ENI_TASKS_CLUSTER": "guarded",
    }
    ours = {"ENI_TASKS_FLOWER_AUTH": AUTH, "ENI_TASKS_FLOWER_URL_PREFIX": PREFIX}
    with flower(folder, **surroundings, **ours) as running:
        yield running
        assert not (folder / "was-run").exists()
        assert running.process.end() == 0
        assert AUTH not in running.process.said
        assert [json.loads(line)["event"] for line in running.process.said.splitlines()]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Flower]:
    """Flower open to all, for looking only, with a short memory."""
    folder = tmp_path_factory.mktemp("shown")
    options = ("--no-auth", "--read-only", "--max-tasks", "100")
    with flower(folder, *options, ENI_TASKS_REDIS_URL=redis_url, ENI_TASKS_CLUSTER="shown") as running:
        yield running


def test_no_page_opens_without_the_password(guarded: Flower) -> None:
    tries = [(path, auth) for path in PATHS for auth in ("", "night:wrong", "night:a", "b:c", "who:ever")]
    assert [(path, auth) for path, auth in tries if guarded.get(PREFIX + path, auth)[0] != 401] == []


def test_no_task_is_started_without_the_password(guarded: Flower, redis_url: str) -> None:
    status, _ = guarded.post(f"{PREFIX}/api/task/async-apply/eni.pause", {"args": ["me", "why"]})
    assert status == 401
    with redis.Redis.from_url(redis_url) as client:
        assert list(client.scan_iter("*guarded*resync")) == []


def test_the_password_opens_everything_below_the_prefix(guarded: Flower) -> None:
    answers = {path: (guarded.get(PREFIX + path, AUTH)[0], guarded.get(path, AUTH)[0]) for path in PATHS}
    assert answers == dict.fromkeys(PATHS, (200, 404))


def test_probes_need_no_password(guarded: Flower) -> None:
    assert guarded.get(PREFIX + "/healthcheck") == (200, "OK")


def test_links_and_files_carry_the_prefix(guarded: Flower) -> None:
    _, page = guarded.get(PREFIX + "/tasks", AUTH)
    links = {link for part in page.split('href="')[1:] if (link := part.partition('"')[0]).startswith("/")}
    assert len(links) > 4
    assert {link for link in links if not link.startswith(PREFIX + "/")} == set()
    style = next(link for link in links if "flower.css" in link)
    assert guarded.get(style)[0] == 200


def test_the_password_is_not_among_the_arguments_of_the_process(guarded: Flower) -> None:
    command = Path(f"/proc/{guarded.process.pid}/cmdline").read_bytes()
    assert b"flower" in command
    assert b"a,b" not in command


def test_it_listens_on_the_loopback_address_alone(guarded: Flower) -> None:
    port = urlsplit(guarded.address).port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5)


def test_our_queues_are_shown_though_no_worker_runs(guarded: Flower, redis_url: str) -> None:
    with make_app(Settings(redis_url=SecretStr(redis_url), cluster="guarded")) as app:
        app.send_task("eni.maintain_node", args=["node-1"], queue="ec2")
    queues = guarded.json(PREFIX + "/api/queues/length")["active_queues"]
    assert [queue["name"] for queue in queues] == ["ec2", "apiserver", "resync"]
    assert queues[0]["messages"] == 1
    _, page = guarded.get(PREFIX + "/broker", AUTH)
    assert all(f">{queue}<" in page.replace(" ", "").replace("\n", "") for queue in ("ec2", "apiserver", "resync"))


def test_a_task_is_started_through_the_api(guarded: Flower, redis_url: str) -> None:
    status, answer = guarded.post(f"{PREFIX}/api/task/async-apply/eni.publish_node", {"args": ["node-7"]}, AUTH)
    assert status == 200, answer
    with redis.Redis.from_url(redis_url) as client:
        (queue,) = client.scan_iter("*guarded*apiserver")
        message = json.loads(client.lindex(queue, 0))
    assert message["headers"]["task"] == "eni.publish_node"
    assert message["headers"]["argsrepr"] == "['node-7']"
    assert json.loads(base64.b64decode(message["body"]))[0] == ["node-7"]


def test_it_ends_at_once_while_redis_answers_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        with flower(tmp_path, "--no-auth", ENI_TASKS_REDIS_URL=url) as running:
            waiting = [silent.accept()[0] for _ in range(3)]  # a thread each waits for an answer
            asked_at = time.monotonic()
            assert running.process.end() == 0
            assert time.monotonic() - asked_at < 3  # a thread that waits gives up after 5 s
            for connection in waiting:
                connection.close()


def test_it_sees_workers_once_redis_is_back(tmp_path: Path) -> None:
    port = redis_servers.free_port()
    url = f"redis://127.0.0.1:{port}/0"
    with flower(tmp_path, "--no-auth", ENI_TASKS_REDIS_URL=url, ENI_TASKS_CLUSTER="back") as running:
        running.process.until(lambda: running.process.said.count("events_not_received") >= 2, "it has tried twice")
        with (
            redis_servers.running(port=port),
            make_app(Settings(redis_url=SecretStr(url), cluster="back")) as app,
            app.connection() as connection,
            app.events.Dispatcher(connection, hostname="ec2-1@here") as dispatcher,
        ):

            def seen() -> bool:
                dispatcher.send("task-received", uuid="hello", name="eni.maintain_node", args="['node-1']")
                return "hello" in running.json("/api/tasks", "")

            running.process.until(seen, "a task")


def test_a_port_that_is_taken_is_told_in_a_sentence(tmp_path: Path, redis_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        options = ("workers.flower", "--no-auth", "--port", port)
        with process(tmp_path / "log", *options, ENI_TASKS_REDIS_URL=redis_url) as ended:
            assert ended.popen.wait(30) == 2
            assert ended.said == f"Flower can't listen on 127.0.0.1 port {port}: Address already in use.\n"


def test_read_only_shows_and_starts_nothing(shown: Flower) -> None:
    assert shown.get("/api/tasks")[0] == 200
    for path in ("/api/task/async-apply/eni.pause", "/api/task/send-task/eni.pause", "/api/worker/shutdown/x"):
        status, words = shown.post(path, {"args": ["me", "why"]})
        assert (status, words) == (403, "Read only mode is enabled")


def test_the_oldest_tasks_are_forgotten(shown: Flower, redis_url: str) -> None:
    with (
        make_app(Settings(redis_url=SecretStr(redis_url), cluster="shown")) as app,
        app.connection() as connection,
        app.events.Dispatcher(connection, hostname="ec2-1@here") as dispatcher,
    ):

        def send(task_id: str) -> None:
            dispatcher.send("task-received", uuid=task_id, name="eni.maintain_node", args="['node-1']")

        def listens() -> bool:
            send("hello")
            return "hello" in shown.json("/api/tasks", "")

        # An event is lost for a Flower that has not subscribed yet.
        shown.process.until(listens, "Flower to listen")
        for number in range(250):
            send(f"t-{number}")
        shown.process.until(lambda: "t-249" in shown.json("/api/tasks", ""), "the last event")
    tasks = shown.json("/api/tasks", "")
    assert set(tasks) == {f"t-{number}" for number in range(150, 250)}
