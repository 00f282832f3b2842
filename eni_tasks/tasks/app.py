"""The Celery app: one factory, no global broker; the settings are those that survive bad days.

A message on Redis is a hint, not a record, so nothing here tries to make it one: no retries, no ETA,
no results. Deadlines are in our code and in the clients' time-outs, since threads know no limits.
"""

from __future__ import annotations

import threading
from typing import Any

import celery
from kombu import Exchange, Queue

from eni_tasks.bootstrap import Services, broker_prefix
from eni_tasks.settings import Settings
from eni_tasks.tasks import broker, transport
from eni_tasks.tasks.messages import CeleryMessages
from eni_tasks.tasks.registry import QUEUES, TASK_QUEUES, register


class EniApp(celery.Celery):  # type: ignore[misc]  # celery ships no types
    """The app with the settings it was made from, and the services of the process that runs it."""

    eni_settings: Settings
    _services: Services | None = None
    _building = threading.Lock()

    @property
    def services(self) -> Services:
        """The use cases of this process, built on first use (in a worker: after any fork)."""
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
    app = EniApp("eni_tasks", broker=broker.address(settings.redis_url.get_secret_value()), set_as_current=False)
    app.eni_settings = settings
    app.conf.update(_configuration(settings))
    register(app)
    return app


def _configuration(settings: Settings) -> dict[str, Any]:
    return {
        "task_acks_late": True,
        "task_reject_on_worker_lost": False,  # the sweep brings it back; a killer task must not loop
        "task_ignore_result": True,
        "task_create_missing_queues": False,  # a typo must not make a queue that nobody consumes
        "task_queues": [Queue(name, Exchange(""), routing_key=name) for name in QUEUES],
        # For those who send by name, as `celery call` does without --queue.
        "task_routes": TASK_QUEUES,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_prefetch_multiplier": 1,
        "worker_send_task_events": True,
        "worker_hijack_root_logger": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
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
        "broker_use_ssl": broker.tls(settings.redis_url.get_secret_value()),
    }
