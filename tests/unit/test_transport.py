"""What we change in kombu and Celery is still what it was made for."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from celery.worker import heartbeat
from celery.worker.consumer import Consumer, heart
from kombu.transport import redis, resolve_transport, virtual

from eni_tasks.tasks import transport

LOOKED_AT = {
    redis.QoS.ack: "1bc15a4d",
    redis.QoS.reject: "747a0243",
    redis.QoS.restore_unacked: "8954efef",
    virtual.QoS.restore_unacked_once: "c81f3d0f",
    virtual.QoS.ack: "0714292b",
    virtual.QoS.can_consume: "787f8009",
    redis.MultiChannelPoller.on_poll_start: "414f76ca",
    redis.Channel._connparams: "e9a42950",
    redis.Channel._brpop_start: "06723d70",
    virtual.Transport.establish_connection: "b9aeb4ed",
    redis.MultiChannelPoller.maybe_check_subclient_health: "e9b7556e",
    virtual.Transport.drain_events: "dc55900a",
    redis.Channel._brpop_read: "c4251869",
    redis.Channel._receive_one: "d59b8751",
    redis.QoS.restore_by_tag: "58e161d8",
    virtual.Transport._deliver: "799e242f",
    Consumer.create_task_handler: "292c5a68",
    Consumer.on_decode_error: "e3538c58",
    Consumer.on_invalid_task: "9893e7a4",
    heartbeat.Heart._send: "8bf96b1c",
    heart.Heart.start: "bb47a223",
}


@pytest.mark.parametrize("method", LOOKED_AT, ids=lambda method: method.__qualname__)
def test_the_library_is_the_one_that_was_looked_at(method: Callable[..., Any]) -> None:
    source = inspect.getsource(method)
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    assert digest == LOOKED_AT[method], (
        f"{method.__module__} changed {method.__qualname__}: see whether what eni_tasks/tasks/transport.py and "
        f"worker.py make of it is still needed and right, "
        f"then write {digest} here"
    )


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_urls_of_redis_lead_to_it(scheme: str) -> None:
    transport.install()
    assert resolve_transport(scheme) is transport.Transport
