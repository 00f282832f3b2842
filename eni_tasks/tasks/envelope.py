"""The form of messages: what has another form is rejected before kombu or Celery works with it.

Anyone who can write to Redis can put anything into a queue. Both libraries take a missing or wrong part for a bug and
end the worker; the message is then delivered again, and ends the next one. The forms here are those that Celery's
protocol 2 sends with the settings in `tasks/app.py`, for tasks, events and remote control alike.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Container
from typing import Any, Literal

import msgspec

from eni_tasks.errors import InvalidInput
from eni_tasks.observability.logs import logger

EXCERPT_CHARACTERS = 200


class DeliveryInfo(msgspec.Struct):
    """Where a message was sent to."""

    exchange: str
    routing_key: str


class Properties(msgspec.Struct):
    """What kombu keeps of a message besides its headers."""

    delivery_tag: str
    delivery_info: DeliveryInfo
    body_encoding: Literal["base64"]


class Envelope(msgspec.Struct):
    """A message as it is in the queue."""

    body: str
    headers: dict[str, Any]
    properties: Properties
    content_type: Literal["application/json"] = msgspec.field(name="content-type")
    content_encoding: Literal["utf-8"] = msgspec.field(name="content-encoding")


class TaskHeaders(msgspec.Struct):
    """The headers that Celery reads before a thread takes the task."""

    task: str
    id: str
    shadow: str | None = None
    root_id: str | None = None
    parent_id: str | None = None
    eta: str | None = None
    expires: str | None = None
    retries: int | None = None
    timelimit: tuple[float | None, float | None] | None = None
    stamped_headers: list[str] | None = None
    stamps: dict[str, Any] | None = None


class ReplyTo(msgspec.Struct):
    """Where the answer to a command goes."""

    exchange: str
    routing_key: str


class Command(msgspec.Struct, forbid_unknown_fields=True):
    """A command of Celery's remote control, as `celery inspect` sends it."""

    method: str
    arguments: dict[str, Any] | None = None
    destination: list[str] | None = None
    pattern: str | None = None
    matcher: Literal["glob", "pcre"] | None = None
    ticket: str | None = None
    reply_to: ReplyTo | None = None


class QueueArguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of `celery control add_consumer` and `cancel_consumer`."""

    queue: str
    exchange: str | None = None
    exchange_type: Literal["direct", "topic", "fanout"] | None = None
    routing_key: str | None = None


# The commands that Celery carries out later, on its own thread: there a wrong argument ends the worker. Wrong arguments
# of other commands are answered with an error.
CARRIED_OUT_LATER = ("add_consumer", "cancel_consumer")


class CommandHeaders(msgspec.Struct):
    """The headers that Celery reads of a command."""

    clock: int | None = None


# Arguments by position, arguments by name, and what follows the task: nothing, in this system.
TaskBody = tuple[list[Any], dict[str, Any], dict[str, None]]


def check_envelope(raw: object) -> None:
    """Check a message as it came out of its queue.

    Raises:
        InvalidInput: a part is missing or wrong; the message says which.
    """
    try:
        envelope = msgspec.convert(raw, Envelope)
        if "compression" in envelope.headers:
            raise InvalidInput("the body is compressed")
        msgspec.json.decode(base64.b64decode(envelope.body, validate=True))
    except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError) as error:
        raise InvalidInput(str(error)) from error


def check_task(headers: object, body: bytes, known: Container[str]) -> None:
    """Check what a message asks a worker to do.

    Args:
        headers: of the message.
        body: decoded from base64.
        known: the names of all tasks.

    Raises:
        InvalidInput: no task can be made of it; the message says why.
    """
    try:
        task = msgspec.convert(headers, TaskHeaders).task
        msgspec.json.decode(body, type=TaskBody)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInput(str(error)) from error
    if task not in known:
        raise InvalidInput(f"there is no task of the name {task[:EXCERPT_CHARACTERS]!r}")


def check_command(headers: object, body: object) -> None:
    """Check a message of Celery's remote control.

    Args:
        headers: of the message.
        body: decoded from JSON.

    Raises:
        InvalidInput: it is no command, or one that would end the worker; the message says why.
    """
    try:
        msgspec.convert(headers, CommandHeaders)
        command = msgspec.convert(body, Command)
        if command.method in CARRIED_OUT_LATER:
            msgspec.convert(command.arguments, QueueArguments)
    except msgspec.MsgspecError as error:
        raise InvalidInput(str(error)) from error


def log_rejected(queue: str, problem: object, message: object) -> None:
    """Log that a message was taken out of its queue and thrown away.

    Args:
        queue: where it was.
        problem: what is wrong with it.
        message: all of it that there is; an excerpt is logged.
    """
    logger().error("message_rejected", queue=queue, problem=str(problem), message=repr(message)[:EXCERPT_CHARACTERS])
