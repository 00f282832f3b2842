"""The way to the broker: kombu's for Redis, made to survive a restart of Redis, and to tell that it lives.

When Redis goes away, channels are closed that somebody still holds: the one that brought a message is gone
before the message's task has ended, and a pooled sender keeps one that is never replaced. kombu 5.7 meets an
attribute of None there, takes it for a bug, and ends the worker, or fails at every message from then on. Here
it is what it is, a lost connection: senders connect again, and a late acknowledgement is logged. Its message
comes back when its visibility ends, and finds its work done, or is the hint that it always was.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from celery.utils.dispatch import Signal
from kombu.transport import TRANSPORT_ALIASES, redis

from eni_tasks.observability.logs import logger

# Sent from the thread that consumes, whenever that is not stuck: it asks for a message, it looks for a free
# slot and finds none, or it tries to connect. A heartbeat would not do: it goes on when nothing is asked for.
consumer_moved = Signal(name="consumer_moved")

# How often a connection that is silent is asked whether it is still there, unless the app says otherwise.
CHECK_SECONDS = 5.0


class QoS(redis.QoS):  # type: ignore[misc]  # kombu ships no types
    """Acknowledging, without taking the loss of a connection for a bug."""

    def can_consume(self) -> bool:
        """Tell whether there is a free slot."""
        free: bool = super().can_consume()
        if not free:
            consumer_moved.send(sender=self)
        return free

    def ack(self, delivery_tag: str) -> None:
        """Take a message off Redis' list of those under way."""
        try:
            super().ack(delivery_tag)
        except self.channel.connection_errors as error:
            _log("ack", error)
            self._quick_ack(delivery_tag)  # or its slot would be taken for good

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001, FBT002 - kombu's signature
        """Take a message off that list, back into its queue if asked to."""
        try:
            super().reject(delivery_tag, requeue=requeue)
        except self.channel.connection_errors as error:
            _log("reject", error)
            self._quick_ack(delivery_tag)

    def restore_unacked(self, client: Any = None) -> None:
        """Put what was not acknowledged back into its queue."""
        try:
            super().restore_unacked(client)
        except self.channel.connection_errors as error:
            _log("restore", error)


def _log(during: str, error: Exception) -> None:
    logger().warning("broker_went_away", during=during, error=f"{type(error).__name__}: {error}")


class Channel(redis.Channel):  # type: ignore[misc]  # kombu ships no types
    """Asks for messages; once closed, says so."""

    QoS = QoS

    def _brpop_start(self, timeout: float | None = None) -> None:
        consumer_moved.send(sender=self)
        super()._brpop_start(timeout)

    def _connparams(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002 - kombu's signature
        if self.connection is None or self.connection.client is None:
            raise ConnectionError("this channel was closed with its connection")
        return super()._connparams(asynchronous)


class Transport(redis.Transport):  # type: ignore[misc]  # kombu ships no types
    """Makes connections."""

    Channel = Channel
    _looked_at = 0.0

    def establish_connection(self) -> Any:
        """Connect; the consumer tries again and again while Redis is away."""
        # Tasks send from threads of their own: that they try says nothing of the consumer.
        if threading.current_thread() is threading.main_thread():
            consumer_moved.send(sender=self)
        return super().establish_connection()

    def drain_events(self, connection: Any, timeout: float | None = None) -> Any:
        """Wait for events, as Flower does: without the event loop that would notice a silent connection."""
        now = time.monotonic()
        if now - self._looked_at >= self.client.transport_options.get("health_check_interval", CHECK_SECONDS):
            self._looked_at = now
            self.cycle.maybe_check_subclient_health()
        return super().drain_events(connection, timeout=timeout)


def install() -> None:
    """Let URLs of Redis lead here; to be called before the first connection is made."""
    TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), f"{__name__}:{Transport.__name__}"))
