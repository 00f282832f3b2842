"""`eni-tasks flower`: Flower with defaults that are safe to leave running.

It asks for a password, its memory is bounded, and only our own options configure it: Flower itself would
also run a `flowerconfig.py` of the working directory and take every FLOWER_ variable, such as the
FLOWER_PORT that Kubernetes sets for a service of that name.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from eni_tasks.cli.output import exit_on_error, fail
from eni_tasks.cli.processes import start
from eni_tasks.errors import InvalidInput
from eni_tasks.observability.logs import logger
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.registry import QUEUES

if TYPE_CHECKING:
    from flower.events import Events

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1, 10
# A stopped worker is shown for this long: longer than a restart takes.
PURGE_SECONDS = 60
# The most searched columns at the left; the uuid opens the task's page.
COLUMNS = "name,args,state,uuid,result,received,runtime,worker"


def flower(  # noqa: PLR0913 - the options of the command
    address: Annotated[str, typer.Option(help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one, which the log shows.")] = 5555,
    auth: Annotated[
        str, typer.Option(envvar="ENI_TASKS_FLOWER_AUTH", help="user:password; better given as the variable.")
    ] = "",
    url_prefix: Annotated[
        str, typer.Option(envvar="ENI_TASKS_FLOWER_URL_PREFIX", help="Serve below this path, such as /flower.")
    ] = "",
    max_tasks: Annotated[int, typer.Option(min=100, help="Tasks remembered, about 6 KiB each.")] = 5000,
    *,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Ask for no password.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show, but start, stop and change nothing.")] = False,
) -> None:
    """Run Flower, which shows workers and tasks. Needs --auth, or --no-auth to run without a password."""
    if problem := _problem(auth, url_prefix, no_auth=no_auth):
        fail(problem, 2)
    with exit_on_error():
        run_flower(
            address=address,
            port=port,
            auth=auth,
            url_prefix=url_prefix.strip("/"),
            max_tasks=max_tasks,
            read_only=read_only,
        )


def run_flower(*, address: str, port: int, auth: str, url_prefix: str, max_tasks: int, read_only: bool) -> None:  # noqa: PLR0913 - the command's options
    """Serve Flower until SIGTERM or SIGINT; never returns.

    Args:
        address: where it listens.
        port: 0 takes a free one.
        auth: `user:password`; empty asks for none, on the pages and in the API.
        url_prefix: path that everything is served below, without slashes at its ends.
        max_tasks: how many tasks are remembered; the oldest are forgotten.
        read_only: refuse everything that starts, stops or changes something.

    Raises:
        InvalidInput: the settings can't be used, or nothing can listen there.
    """
    # Not above: every other command would wait for Flower's web server to load.
    from flower.events import Events  # noqa: PLC0415
    from flower.options import options  # noqa: PLC0415
    from flower.views import BaseHandler  # noqa: PLC0415

    settings = start()
    for name in [name for name in os.environ if name.startswith("FLOWER_")]:
        del os.environ[name]
    if auth:
        # Not as an argument: there a comma would make two passwords of one.
        options.basic_auth = [auth]
    else:
        os.environ["FLOWER_UNAUTHENTICATED_API"] = "true"
        if not _is_loopback(address):
            logger().warning("flower_without_password", address=address)
    # Flower would show only the queues of workers that have answered, so not a queue without workers.
    BaseHandler.get_active_queue_names = lambda _: list(QUEUES)
    Events.run = receive_events
    argv = [
        "flower",
        f"--address={address}",
        f"--port={port}",
        f"--max-tasks={max_tasks}",
        f"--purge-offline-workers={PURGE_SECONDS}",
        f"--tasks-columns={COLUMNS}",
        f"--read-only={read_only}",
        f"--logging={settings.log_level}",
        f"--conf={os.devnull}",
        *([f"--url-prefix={url_prefix}"] if url_prefix else []),
    ]
    try:
        make_app(settings).start(argv)
    except OSError as error:
        raise InvalidInput(f"Flower can't listen on {address} port {port}: {error.strerror}.") from error
    # Python's own end would wait for threads that ask workers, and so for Redis. Nothing is left to be saved.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def receive_events(events: Events) -> None:
    """Receive the workers' events, whatever becomes of the connection: the body of Flower's thread.

    Flower's own doubles its pause after each failure without a bound, so that after an outage of an hour it would
    show nothing for up to an hour.
    """
    pause_seconds = FIRST_PAUSE_SECONDS
    while True:
        try:
            with events.capp.connection() as connection:
                connection.connect()  # once: what follows would try again without end
                receiver = events.capp.events.Receiver(connection, handlers={"*": events.on_event})
                pause_seconds = FIRST_PAUSE_SECONDS
                receiver.capture(limit=None, timeout=None, wakeup=True)
        except Exception as error:  # noqa: BLE001 - whatever ends this thread would end the view of all workers
            logger().warning("events_not_received", error=str(error), again_in_seconds=pause_seconds)
            time.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)


def _problem(auth: str, url_prefix: str, *, no_auth: bool) -> str:
    """What is wrong with the command's options; empty if nothing is."""
    user, _, password = auth.partition(":")
    if auth and no_auth:
        return "Both a password (--auth or ENI_TASKS_FLOWER_AUTH) and --no-auth are given: say which."
    if not auth and not no_auth:
        return "Flower can start and stop everything: set ENI_TASKS_FLOWER_AUTH=user:password, or say --no-auth."
    if auth and not (user and password and auth.isascii()):
        return "--auth (or ENI_TASKS_FLOWER_AUTH) must be user:password, in ASCII."
    if url_prefix and not re.fullmatch(r"/?[\w-]+(/[\w-]+)*/?", url_prefix, re.ASCII):
        return f"--url-prefix {url_prefix} is not a path such as /flower or /tools/flower."
    return ""


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
