"""Whatever is put into a queue by other means: it is thrown away and logged once, and the worker goes on."""

from __future__ import annotations

import base64
import copy
import json
import random
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis_servers
from processes_under_test import Process, running
from pydantic import SecretStr
from raw_messages import GOOD, encoded

from eni_tasks.sandbox.kube.admin import write_kubeconfig
from eni_tasks.settings import Settings
from eni_tasks.state.keys import Keys
from eni_tasks.tasks.app import make_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(180)

KEYS = Keys("default")
QUEUE, UNACKED, UNACKED_INDEX = KEYS.queue("resync"), f"{KEYS.broker}unacked", f"{KEYS.broker}unacked_index"
CONTROL = f"{KEYS.broker}/0.celery.pidbox"


MISSING = object()


def changed(*path: str, to: object = MISSING) -> str:
    """A good message but for one part."""
    message: dict[str, Any] = copy.deepcopy(GOOD)
    *above, last = path
    part = message
    for name in above:
        part = part[name]
    if to is MISSING:
        del part[last]
    else:
        part[last] = to
    return json.dumps(message)


PARTS = [
    *((name,) for name in ("body", "content-type", "content-encoding", "headers", "properties")),
    *(("properties", name) for name in ("delivery_info", "delivery_tag", "body_encoding")),
    *(("properties", "delivery_info", name) for name in ("exchange", "routing_key")),
    *(("headers", name) for name in ("task", "id")),
]
BODIES = ("null", "1", "[]", "[1]", "{}", "[[], {}]", "[1, {}, {}]")
WRONG: dict[str, str | bytes] = {
    "nothing": "",
    "no JSON": "what is this",
    "no text": b"\xff\xfe\x00",
    "null": "null",
    "an empty list": "[]",
    "a number": "1",
    "a text": '"message"',
    "an empty object": "{}",
    "half a message": json.dumps(GOOD)[:100],
    "too deep": "[" * 200_000,
    "a date that is none": '{"__type__": "datetime", "__value__": 1}',
    "a number that is none": '{"__type__": "decimal", "__value__": "x"}',
    **{f"without {'.'.join(path)}": changed(*path) for path in PARTS},
    **{f"null for {'.'.join(path)}": changed(*path, to=None) for path in PARTS},
    **{f"a list for {'.'.join(path)}": changed(*path, to=[1]) for path in PARTS},
    "a body that is no base64": changed("body", to="%%%"),
    "a body that is no JSON": changed("body", to=base64.b64encode(b"no").decode()),
    "a body of the protocol of before": changed("body", to=encoded({"task": "eni.pause", "args": [], "id": "1"})),
    **{f"body {body}": changed("body", to=encoded(json.loads(body))) for body in BODIES},
    "args that are no list": changed("body", to=encoded(["args", {}, {}])),
    "kwargs that are no object": changed("body", to=encoded([[], [], {}])),
    "what follows is no object": changed("body", to=encoded([[], {}, 1])),
    "a task that follows": changed("body", to=encoded([[], {}, {"callbacks": [{"task": "x"}]}])),
    "arguments of an unknown type": changed("body", to=encoded([[{"__type__": "decimal", "__value__": "x"}], {}, {}])),
    "a pickle": changed("content-type", to="application/x-python-serialize"),
    "an unknown encoding": changed("content-encoding", to="klingon"),
    "compressed": changed("headers", "compression", to="application/x-gzip"),
    "an unknown task": changed("headers", "task", to="eni.destroy_everything"),
    "an id that is a list": changed("headers", "id", to=[]),
    "an ETA that is no time": changed("headers", "eta", to="tomorrow"),
    "an ETA that is a number": changed("headers", "eta", to=5),
    "an expiry that is no time": changed("headers", "expires", to="soon"),
    "a time limit that is none": changed("headers", "timelimit", to="x"),
    "a time limit of one part": changed("headers", "timelimit", to=[1]),
    "stamps that are none": changed("headers", "stamped_headers", to=3),
}
# Celery runs these tasks; they refuse their arguments.
REFUSED = {
    "an argument too many": changed("body", to=encoded([["a", "b", "c"], {}, {}])),
    "no arguments": changed("body", to=encoded([[], {}, {}])),
    "an unknown argument": changed("body", to=encoded([[], {"whom": "x"}, {}])),
}


@contextmanager
def a_worker(folder: Path) -> Iterator[tuple[redis.Redis, Process]]:
    """A worker of the queue `resync`, on a Redis of its own."""
    with redis_servers.running() as url:
        environment = {
            "ENI_TASKS_REDIS_URL": url,
            "ENI_TASKS_PROBE_DIR": str(folder),
            "KUBECONFIG": str(write_kubeconfig(folder / "kubeconfig", "http://127.0.0.1:9")),
            "AWS_REGION": "eu-west-1",
        }
        with redis.Redis.from_url(url) as client, running(folder / "log", "workers.resync", **environment) as worker:
            worker.until((folder / "ready").exists, "it serves")
            yield client, worker


def rejections(worker: Process) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in worker.said.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == "message_rejected"]


def serves(client: redis.Redis, worker: Process) -> None:
    """A good message still leads to what it asks for."""
    client.hdel(KEYS.switches, "pause")
    client.lpush(QUEUE, json.dumps(GOOD))
    worker.until(lambda: client.hexists(KEYS.switches, "pause"), "the good message is served")
    worker.until(lambda: not client.exists(QUEUE, UNACKED, UNACKED_INDEX), "all messages are acknowledged")


def test_c07_each_wrong_message_is_rejected_once_and_work_goes_on(tmp_path: Path) -> None:
    with a_worker(tmp_path) as (client, worker):
        serves(client, worker)
        for name, message in WRONG.items():
            before = len(rejections(worker))
            client.lpush(QUEUE, message)
            found = worker.until(lambda: rejections(worker)[before:], f"{name} is rejected")  # noqa: B023 - not kept
            assert found[0]["queue"] == "resync", name
            assert found[0]["problem"], name
        serves(client, worker)
        assert len(rejections(worker)) == len(WRONG), "each once"
        client.lpush(QUEUE, *REFUSED.values())
        worker.until(lambda: worker.said.count("task_refused") == len(REFUSED), "wrong arguments are refused")
        serves(client, worker)
        assert "Traceback" not in worker.said
        assert "Trying to re-establish" not in worker.said, "no connection was given up for a message"
        assert worker.end() == 0


def test_c07_an_entry_of_the_unacknowledged_that_is_none(tmp_path: Path) -> None:
    with a_worker(tmp_path) as (client, worker):
        long_ago = time.time() - 3600
        values = ["no JSON", "null", "1", "[1]", json.dumps([1, "", "resync"]), json.dumps([GOOD, 5, "resync"])]
        for number, value in enumerate(values):
            client.hset(UNACKED, f"tag-{number}", value)
            client.zadd(UNACKED_INDEX, {f"tag-{number}": long_ago})
        worker.until(lambda: not client.exists(UNACKED_INDEX), "they are restored or thrown away")
        serves(client, worker)
        assert worker.end() == 0


COMMAND = {"method": "ping", "arguments": {}, "destination": None, "pattern": None, "matcher": None}
REPLY_TO = {"exchange": "reply.celery.pidbox", "routing_key": "somebody"}
# Messages of a right form around something that is no command.
NO_COMMANDS: dict[str, str | bytes] = {
    **{
        f"the command {command!r}": changed("body", to=encoded(command))
        for command in (
            {},
            {**COMMAND, "method": None},
            {**COMMAND, "arguments": [1]},
            {**COMMAND, "destination": 5},
            {**COMMAND, "pattern": 5, "matcher": "glob"},
            {**COMMAND, "pattern": "*", "matcher": "unknown"},
            {**COMMAND, "self": 1},
            {**COMMAND, "method": "add_consumer", "arguments": {"queue": []}},
            {**COMMAND, "method": "add_consumer", "arguments": {"queue": "new", "exchange_type": "unknown"}},
            {**COMMAND, "method": "add_consumer", "arguments": {"queue": "new", "priority": 5}},
            {**COMMAND, "method": "cancel_consumer", "arguments": {"queue": 1}},
            {**COMMAND, "ticket": []},
            {**COMMAND, "ticket": "1", "reply_to": {"exchange": 1}},
            {**COMMAND, "ticket": "1", "reply_to": {**REPLY_TO, "routing_key": None}},
        )
    },
    "a clock that is none": changed("headers", "clock", to="noon"),
}


def hears(client: redis.Redis) -> bool:
    """Whether the worker listens for remote control: Celery subscribes to a pattern."""
    return bool(client.pubsub_numpat())


def answers(client: redis.Redis) -> bool:
    """Whether the worker answers `celery inspect ping`."""
    with closing(make_app(Settings(redis_url=SecretStr(_url(client))))) as app:
        try:
            return bool(app.control.ping(timeout=2, limit=1))
        except redis.ConnectionError:  # kombu keeps connections of the call before, which may be cut
            return False


def test_c08_a_key_of_celerys_that_has_a_wrong_type(tmp_path: Path) -> None:
    with a_worker(tmp_path) as (client, worker):
        for key in ("resync", "unacked", "unacked_index", "unacked_mutex", "_kombu.binding.celery.pidbox"):
            serves(client, worker)  # it is connected, and a cut leads to another connection
            wrong = f"{KEYS.broker}{key}"
            with client.pipeline() as at_once:
                at_once.delete(wrong)
                at_once.xadd(wrong, {"what": "is this"})
                at_once.execute()
            client.client_kill_filter(_type="normal", skipme=True)  # or some are only used when a worker starts
            worker.until(lambda: client.type(wrong) != b"stream", f"{key} is deleted")  # noqa: B023 - not kept
        serves(client, worker)
        worker.until(lambda: answers(client), "it answers")
        assert worker.end() == 0


def test_c07_remote_control_that_is_none(tmp_path: Path) -> None:
    with a_worker(tmp_path) as (client, worker):
        worker.until(lambda: hears(client), "it listens")
        for name, message in {**WRONG, **NO_COMMANDS}.items():
            before = len(rejections(worker))
            assert client.publish(CONTROL, message) == 1, f"the worker hears {name}"
            found = worker.until(lambda: rejections(worker)[before:], f"{name} is rejected")  # noqa: B023 - not kept
            assert "celery.pidbox" in found[0]["queue"], name
        assert answers(client)
        assert len(rejections(worker)) == len(WRONG) + len(NO_COMMANDS), "each once"
        asked = {**COMMAND, "method": "rate_limit", "arguments": {"task_name": "eni.pause", "rate_limit": "5/m"}}
        for number in range(1, 11):
            with client.pipeline() as both:
                both.publish(CONTROL, changed("body", to=encoded(None)))
                both.publish(CONTROL, changed("body", to=encoded(asked)))
                assert both.execute() == [1, 1], "it still listens after each"
            worker.until(lambda: worker.said.count("New rate limit") == number, "the command is carried out")  # noqa: B023 - not kept
        assert "Traceback" not in worker.said
        serves(client, worker)
        assert worker.end() == 0


def test_c07_remote_control_after_a_reconnect(tmp_path: Path) -> None:
    with a_worker(tmp_path) as (client, worker):
        worker.until(lambda: hears(client), "it listens")
        for kind in ("pubsub", "normal"):
            listeners = {entry["id"] for entry in client.client_list(_type="pubsub")}
            client.client_kill_filter(_type=kind, skipme=True)
            if kind == "pubsub":
                worker.until(lambda: {c["id"] for c in client.client_list(_type="pubsub")} - listeners, "it is back")  # noqa: B023 - not kept
            worker.until(lambda: answers(client), f"it answers after a cut of {kind}")
        serves(client, worker)
        assert worker.end() == 0


def test_c07_random_damage(tmp_path: Path) -> None:
    whole = json.dumps(GOOD).encode()
    chance = random.Random(7)  # noqa: S311 - damage that is the same each time
    with a_worker(tmp_path) as (client, worker):
        for _ in range(300):
            damaged = bytearray(whole)
            for _ in range(chance.randint(1, 3)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(32, 127)
            client.lpush(QUEUE, bytes(damaged))
        serves(client, worker)
        assert worker.end() == 0


def _url(client: redis.Redis) -> str:
    place = client.connection_pool.connection_kwargs
    return f"redis://{place['host']}:{place['port']}/0"
