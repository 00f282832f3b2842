"""The Celery app: one factory, no global broker, and settings that survive outages of Redis.

A message on Redis only wakes a worker; the work itself is in the shared state. So messages have no retries, no ETA and
no results. Deadlines are in our code and in the clients' time-outs, since Celery can't interrupt threads.
"""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import celery
from kombu import Exchange, Queue

from eni_tasks.bootstrap import Services, broker_prefix
from eni_tasks.settings import Settings
from eni_tasks.tasks import transport
from eni_tasks.tasks.messages import CeleryMessages
from eni_tasks.tasks.registry import QUEUES, TASK_QUEUES, register


class EniApp(celery.Celery):  # type: ignore[misc]  # celery ships no types
    """The app with the settings it was made from, and the services of the process that runs it."""

    eni_settings: Settings
    _services: Services | None = None
    _building = threading.Lock()

    @property
    def services(self) -> Services:
        """The services of this process, built on first use (in a worker: after any fork)."""
        with self._building:
            if self._services is None:
                self._services = Services(self.eni_settings, CeleryMessages(self))
        return self._services


def make_app(settings: Settings) -> EniApp:
    """Make the Celery app.

    Args:
        settings: where Redis is, and what the deployment is called.

    Returns:
        An app that can send, run a worker, or be shown by Flower; nothing is connected yet.
    """
    transport.install()
    app = EniApp("eni_tasks", broker=_broker_url(settings.redis_url.get_secret_value()), set_as_current=False)
    app.eni_settings = settings
    app.conf.update(_configuration(settings))
    register(app)
    return app


def _configuration(settings: Settings) -> dict[str, Any]:
    return {
        "task_acks_late": True,
        "task_reject_on_worker_lost": False,  # requeued as overdue; a task that kills its worker must not loop
        "task_ignore_result": True,
        "task_create_missing_queues": False,  # a typo must not make a queue that no worker consumes
        "task_queues": [Queue(name, Exchange(""), routing_key=name) for name in QUEUES],
        # For senders that name only the task, as `celery call` does without --queue.
        "task_routes": TASK_QUEUES,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_prefetch_multiplier": 1,
        "worker_send_task_events": True,
        "worker_hijack_root_logger": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_channel_error_retry": True,  # an error that Redis answers ends no worker, either
        "broker_pool_limit": 32,
        "broker_pool_acquire_timeout": 10,
        "task_publish_retry_policy": {"max_retries": 3, "interval_start": 0, "interval_step": 0.2, "interval_max": 1},
        "broker_transport_options": {
            "visibility_timeout": 600,
            "unacked_restore_interval": 10,
            "unacked_restore_throttle": 1,
            "socket_timeout": 5,  # a silent connection is given up in the second interval of its check
            "socket_connect_timeout": 5,
            "socket_keepalive": True,
            "health_check_interval": transport.CHECK_SECONDS,
            "max_connections": 128,
            "priority_steps": [0],
            "global_keyprefix": broker_prefix(settings),
        },
        "broker_use_ssl": _broker_tls(settings.redis_url.get_secret_value()),
    }


def _broker_url(url: str) -> str:
    """The URL without the options that follow it: Celery gives them another meaning than our own client."""
    return urlunsplit(urlsplit(url)._replace(query=""))


def _broker_tls(url: str) -> dict[str, Any] | None:
    """The TLS options of a rediss:// URL, in the form of Celery's `broker_use_ssl`; None without TLS.

    Celery verifies a server only if it is asked to. Here the certificate and the name are verified unless the URL says
    otherwise.
    """
    parts = urlsplit(url)
    if parts.scheme != "rediss":
        return None
    options: dict[str, Any] = {"ssl_cert_reqs": "required", **dict(parse_qsl(parts.query))}
    if "ssl_check_hostname" in options:
        options["ssl_check_hostname"] = options["ssl_check_hostname"] == "true"
    return options
