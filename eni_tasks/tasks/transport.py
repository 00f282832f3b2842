"""kombu's transport for Redis, changed so that it survives, and reports that it is active.

When Redis goes away, kombu closes channels that are still in use: the channel that brought a message is closed before
the message's task has ended, and a pooled sender keeps a channel that is never replaced. kombu 5.7 then reads an
attribute of None, treats that as a bug, and ends the worker or fails at every message that follows. Here it is handled
as a lost connection: senders connect again, and a late acknowledgement is logged. Its message is delivered again when
its visibility timeout ends; that only wakes a worker once more.

When a server refuses to serve, as a demoted primary does, its connections are dropped (`state/refusing.py`), and a new
one counts only if it takes writes.

A message of a wrong form is thrown away and logged (`tasks/envelope.py`); to kombu it is a bug as well. A key of
Celery's that has a wrong type is deleted when a connection is made; kombu would connect again without end.
"""

from __future__ import annotations

import json
import threading
import time
from queue import Empty
from typing import Any

from celery.utils.dispatch import Signal
from kombu.transport import TRANSPORT_ALIASES, redis
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import loads as decode

from eni_tasks.errors import InvalidInput
from eni_tasks.observability.logs import logger
from eni_tasks.state.refusing import Connection, TlsConnection
from eni_tasks.tasks.envelope import check_envelope, log_rejected
from eni_tasks.tasks.registry import QUEUES

# Sent from the thread that consumes, whenever that is not stuck: it asks for a message, it finds no free slot, or it
# tries to connect. A heartbeat would not do: it continues while no message is asked for.
consumer_active = Signal(name="consumer_active")

# The exchange of remote control: in the log, where a message came from that reached no queue.
REMOTE_CONTROL = "celery.pidbox"

# Celery's keys that live for longer than a call.
KEY_TYPES = {
    **dict.fromkeys(QUEUES, "list"),
    "unacked": "hash",
    "unacked_index": "zset",
    "unacked_mutex": "string",
    **{f"_kombu.binding.{exchange}": "set" for exchange in (REMOTE_CONTROL, f"reply.{REMOTE_CONTROL}", "celeryev")},
}

# How often a silent connection is checked, unless the app's transport options say otherwise.
CHECK_SECONDS = 5.0
REFRESH_RETRY_SECONDS = 60.0


class QoS(redis.QoS):  # type: ignore[misc]  # kombu ships no types
    """Acknowledges messages; a lost connection is no bug."""

    def can_consume(self) -> bool:
        """Whether there is a free slot."""
        free: bool = super().can_consume()
        if not free:
            consumer_active.send(sender=self)
        return free

    def ack(self, delivery_tag: str) -> None:
        """Remove a message from Redis' list of unacknowledged ones."""
        try:
            super().ack(delivery_tag)
        except self.channel.connection_errors as error:
            _log("ack", error)
            self._quick_ack(delivery_tag)  # or its slot would stay taken

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001, FBT002 - kombu's signature
        """Remove a message from that list, back into its queue if asked to."""
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

    def restore_by_tag(self, tag: str, client: Any = None, leftmost: bool = False) -> None:  # noqa: FBT001, FBT002 - kombu's signature
        """Put one unacknowledged message back into its queue; an entry that is none is deleted."""
        try:
            super().restore_by_tag(tag, client, leftmost)
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
            log_rejected(self.unacked_key, error, tag)
            self._remove_from_indices(tag).execute()


def _log(during: str, error: Exception) -> None:
    logger().warning("broker_connection_lost", during=during, error=f"{type(error).__name__}: {error}")


class Channel(redis.Channel):  # type: ignore[misc]  # kombu ships no types
    """Asks for messages; a use after it was closed is a connection error."""

    QoS = QoS
    _refreshes_at = 0.0
    connection_class = Connection
    connection_class_ssl = TlsConnection

    def _brpop_start(self, timeout: float | None = None) -> None:
        consumer_active.send(sender=self)
        super()._brpop_start(timeout)

    def _brpop_read(self, **options: Any) -> bool:
        # As kombu's own, but for a message that is no JSON.
        try:
            answer = self._brpop_answer(**options)
            if not answer:
                raise Empty
            name, item = answer
            queue = bytes_to_str(name).rsplit(self.sep, 1)[0]
            self._queue_cycle.rotate(queue)
            try:
                message = json.loads(item)
            except (ValueError, RecursionError) as error:
                log_rejected(queue, error, item)
            else:
                self.connection._deliver(message, queue)  # noqa: SLF001 - kombu calls it so, too
            return True
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()

    def _brpop_answer(self, **options: Any) -> Any:
        try:
            return self.client.parse_response(self.client.connection, "BRPOP", **options)
        except self.connection_errors:
            self.client.connection.disconnect()  # the next attempt connects again
            raise

    def maybe_refresh_binding_expiry(self) -> None:
        """Extend the lifetime of what remote control left in Redis, as kombu asks for each second.

        It lives for an hour, so after a refusal of the server the next attempt can wait.
        """
        if time.monotonic() < self._refreshes_at:
            return
        try:
            super().maybe_refresh_binding_expiry()
        except self.ResponseError as error:
            self._refreshes_at = time.monotonic() + REFRESH_RETRY_SECONDS
            logger().warning("broker_refused", error=str(error))

    def _handle_message(self, client: Any, r: Any) -> Any:
        # A message that is no JSON is thrown away here; kombu logs a trace, or takes it for a bug.
        answer = super()._handle_message(client, r)
        if bytes_to_str(answer["type"]).endswith("message"):
            try:
                decode(bytes_to_str(answer["data"]))
            except (ValueError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
                log_rejected(REMOTE_CONTROL, error, answer["data"])
                answer["data"] = None  # kombu takes no notice of it
        return answer

    def _connparams(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002 - kombu's signature
        if self.connection is None or self.connection.client is None:
            raise ConnectionError("this channel was closed with its connection")
        return super()._connparams(asynchronous)


def _delete_wrong_types(client: Any, prefix: str) -> None:
    # What was in them is lost, as it was when somebody put something else in their place.
    for name, expected in KEY_TYPES.items():
        found = bytes_to_str(client.type(prefix + name))
        if found not in (expected, "none"):
            client.delete(name)
            logger().error("state_key_deleted", key=prefix + name, type=found, expected=expected)


class Transport(redis.Transport):  # type: ignore[misc]  # kombu ships no types
    """Makes connections, and checks silent ones."""

    Channel = Channel
    _checked_at = 0.0

    def establish_connection(self) -> Any:
        """Connect; the consumer retries while Redis is away."""
        # Tasks send from threads of their own: their attempts say nothing about the consumer.
        if threading.current_thread() is threading.main_thread():
            consumer_active.send(sender=self)
        established = super().establish_connection()
        self._check_server()
        return established

    def _check_server(self) -> None:
        """See that the server takes writes, and that Celery's keys have the types that Celery expects.

        A replica, or a server without memory, answers pings all the same. Without this a consumer would connect again
        at once after each refusal, and take messages that it can't note as unacknowledged.
        """
        channel = self._avail_channels[-1]
        try:
            with channel.conn_or_acquire() as client:
                client.set("connected", 1, px=1000)
                _delete_wrong_types(client, channel.global_keyprefix)
        except BaseException:
            self._avail_channels.remove(channel)
            channel.close()
            raise

    def drain_events(self, connection: Any, timeout: float | None = None) -> Any:
        """Wait for events, as Flower does: without the event loop that would notice a silent connection."""
        now = time.monotonic()
        if now - self._checked_at >= self.client.transport_options.get("health_check_interval", CHECK_SECONDS):
            self._checked_at = now
            self.cycle.maybe_check_subclient_health()
        return super().drain_events(connection, timeout=timeout)

    def _deliver(self, message: Any, queue: str) -> None:
        # Before it is noted as unacknowledged: from there it would be delivered again.
        try:
            check_envelope(message)
        except InvalidInput as error:
            log_rejected(queue, error, message)
        else:
            super()._deliver(message, queue)


def install() -> None:
    """Use this transport for URLs of Redis; to be called before the first connection is made."""
    TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), f"{__name__}:{Transport.__name__}"))
