"""The way to the broker on its bad days, and what the consumer shows of them."""

from __future__ import annotations

import threading
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import kombu
import pytest
import redis_servers
from kombu.transport.redis import Transport as KombusOwn
from wire import Wire

from eni_tasks.tasks.transport import Transport, consumer_active

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUEUE = kombu.Queue("bad-days", kombu.Exchange(""), routing_key="bad-days")


class Consumer:
    """A consumer with one slot, and what it has received."""

    def __init__(self, url: str, transport: type[KombusOwn] = Transport) -> None:
        self.url = url
        options = {"socket_timeout": 2, "max_connections": 8}
        self.connection = kombu.Connection(url, transport=transport, transport_options=options)
        self.received: list[Any] = []
        self.consumer = self.connection.Consumer(QUEUE, on_message=self.received.append, prefetch_count=1)
        self.consumer.consume()

    def is_sent_one(self) -> None:
        """A message arrives, and takes the slot."""
        with kombu.Connection(self.url, transport=Transport) as sender:
            sender.Producer().publish({}, routing_key=QUEUE.name, serializer="json")
        self.turn()
        assert len(self.received) == 1

    def turn(self, seconds: float = 3.0) -> None:
        """Let it wait for messages once."""
        with suppress(TimeoutError):  # nothing came
            self.connection.drain_events(timeout=seconds)


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with redis_servers.running() as url:
        yield url


@pytest.fixture
def consumer(redis_url: str) -> Iterator[Consumer]:
    consumer = Consumer(redis_url)
    yield consumer
    consumer.connection.close()


@contextmanager
def signs_of_life() -> Iterator[list[object]]:
    signs: list[object] = []

    def note(sender: object, **_: object) -> None:
        signs.append(sender)

    consumer_active.connect(note)
    try:
        yield signs
    finally:
        consumer_active.disconnect(note)


LATE: dict[str, Callable[[Any], Any]] = {
    "ack": lambda message: message.channel.qos.ack(message.delivery_tag),
    "reject": lambda message: message.channel.qos.reject(message.delivery_tag),
    "requeue": lambda message: message.channel.qos.reject(message.delivery_tag, requeue=True),
    "restore": lambda message: message.channel.qos.restore_unacked(),
}


@pytest.mark.parametrize("what", LATE)
@pytest.mark.parametrize("transport", [Transport, KombusOwn], ids=["ours", "kombus-own"])
def test_p02_a_task_that_ends_after_redis_went_away(transport: type[KombusOwn], what: str) -> None:
    with redis_servers.running() as url:
        consumer = Consumer(url, transport)
        consumer.is_sent_one()
    message = consumer.received[0]
    with suppress(*consumer.connection.connection_errors):
        consumer.connection.collect()  # as a worker does when it connects again
    message.channel._disconnect_pools()
    if transport is Transport:
        LATE[what](message)
        if what != "restore":
            assert message.channel.qos.can_consume(), "its slot is free again"
    else:
        # Once this passes, kombu has mended it, and our transport can go.
        with pytest.raises(AttributeError):
            LATE[what](message)


@pytest.mark.parametrize("transport", [Transport, KombusOwn], ids=["ours", "kombus-own"])
def test_p02_a_sender_whose_channel_was_closed(redis_url: str, transport: type[KombusOwn]) -> None:
    queue, once_more = f"sender of {transport.__module__}", {"max_retries": 1, "interval_start": 0}
    with kombu.Connection(redis_url, transport=transport) as connection:
        sender = connection.Producer(serializer="json")
        sender.publish("before", routing_key=queue)
        channel = sender.channel
        connection.collect()  # as another who shares the connection does
        channel._disconnect_pools()
        if transport is Transport:
            sender.publish("after", routing_key=queue, retry=True, retry_policy=once_more)
            assert connection.default_channel.client.llen(queue) == 2
        else:
            for _ in range(2):  # for good
                with pytest.raises(AttributeError):
                    sender.publish("after", routing_key=queue, retry=True, retry_policy=once_more)


@pytest.mark.parametrize("what", LATE)
def test_a_bug_is_not_taken_for_an_outage(consumer: Consumer, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    consumer.is_sent_one()
    message = consumer.received[0]
    for part in ("_remove_from_indices", "restore_by_tag"):
        monkeypatch.setattr(f"kombu.transport.redis.QoS.{part}", bug)
    with pytest.raises(AttributeError, match="a bug"):
        LATE[what](message)


def bug(*_: object, **__: object) -> None:
    raise AttributeError("a bug")


def test_what_is_acknowledged_in_time_is_gone(consumer: Consumer) -> None:
    consumer.is_sent_one()
    consumer.received[0].ack()
    assert consumer.consumer.channel.client.zcard("unacked_index") == 0


def test_an_idle_consumer_shows_that_it_asks(consumer: Consumer) -> None:
    with signs_of_life() as signs:
        consumer.turn()
        assert signs


def test_a_busy_consumer_shows_that_it_looks(consumer: Consumer) -> None:
    consumer.is_sent_one()
    with signs_of_life() as signs:
        consumer.turn(0.1)
        assert signs


def test_p02_a_consumer_that_asks_for_nothing_shows_nothing(consumer: Consumer) -> None:
    consumer.turn()
    consumer.consumer.cancel()
    with signs_of_life() as signs:
        consumer.turn(0.1)
        assert signs == []


def test_p02_a_listener_whose_connection_hangs_half_open_subscribes_again(redis_url: str) -> None:
    # As Flower listens: in a thread of its own, without an event loop.
    news = kombu.Exchange("news", type="fanout")
    wire = Wire(urlsplit(redis_url).port or 0)
    options = {"socket_timeout": 2, "health_check_interval": 0.5}
    heard: list[Any] = []
    with closing(wire), kombu.Connection(redis_url, transport=Transport) as teller:
        said = teller.Producer(exchange=news, serializer="json")
        with kombu.Connection(wire.url, transport=Transport, transport_options=options) as listener:
            queue = kombu.Queue("listener", news, auto_delete=True)
            with listener.Consumer(queue, callbacks=[lambda body, _: heard.append(body)], no_ack=True):
                for words in ("before", "after"):
                    deadline = time.monotonic() + 20
                    while words not in heard:
                        assert time.monotonic() < deadline, f"{heard} was heard"
                        said.publish(words)
                        with suppress(TimeoutError):
                            listener.drain_events(timeout=0.2)
                    wire.silence()


def test_trying_to_connect_is_a_sign_of_life_of_the_consumer_alone() -> None:
    with redis_servers.running() as url:
        pass
    errors: list[BaseException] = []

    def connect() -> None:
        with kombu.Connection(url, transport=Transport) as connection:
            try:
                connection.connect()
            except connection.connection_errors as error:
                errors.append(error)

    with signs_of_life() as signs:
        sender = threading.Thread(target=connect)
        sender.start()
        sender.join()
        assert signs == []
        connect()
        assert signs
    assert len(errors) == 2
