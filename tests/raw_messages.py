"""A message of Celery's as it is in the queue `resync`."""

from __future__ import annotations

import base64
import json


def encoded(body: object) -> str:
    return base64.b64encode(json.dumps(body).encode()).decode()


GOOD = {
    "body": encoded([["somebody", "a test"], {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}]),
    "content-encoding": "utf-8",
    "content-type": "application/json",
    "headers": {"task": "eni.pause", "id": "1", "root_id": "1", "parent_id": None, "eta": None, "expires": None},
    "properties": {
        "correlation_id": "1",
        "delivery_info": {"exchange": "", "routing_key": "resync"},
        "delivery_mode": 2,
        "delivery_tag": "tag",
        "body_encoding": "base64",
        "priority": 0,
    },
}
