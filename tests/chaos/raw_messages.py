"""Messages in Celery's queues that no sender of ours writes: no JSON, no envelope, or one with a wrong part."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

RAW = (b"", b"no JSON", b"null", b"[]", b"1", b'"text"', b"{}", b"\xff\xfe", b'{"body": 1}')
WRONG: tuple[Any, ...] = (None, [], {}, 1, "", "no JSON")
ARGUMENTS: tuple[Any, ...] = (
    [["node-1"], {}, {}],
    [[], {}, {}],
    [[1, 2, 3], {}, {}],
    [["node-1"], {"no": "such"}, {}],
    1,
    None,
)


def raw_message(rng: Random, queue: str) -> bytes:
    """One of them."""
    if rng.random() < 0.4:
        return rng.choice(RAW)
    envelope = _envelope(rng, queue)
    part = rng.choice((envelope, envelope["headers"], envelope["properties"], envelope["properties"]["delivery_info"]))
    name = rng.choice(list(part))
    if rng.random() < 0.5:
        del part[name]
    else:
        part[name] = rng.choice(WRONG)
    return json.dumps(envelope).encode()


def _envelope(rng: Random, queue: str) -> dict[str, Any]:
    """A message as kombu writes it, for a task that there is or isn't."""
    uuid = f"{rng.getrandbits(128):032x}"
    args = rng.choice(ARGUMENTS)
    return {
        "body": base64.b64encode(json.dumps(args).encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            "lang": "py",
            "task": rng.choice(("eni.maintain_node", "eni.publish_node", "eni.no_such_task")),
            "id": uuid,
            "root_id": uuid,
            "parent_id": None,
            "argsrepr": "('node-1',)",
            "kwargsrepr": "{}",
            "retries": 0,
            "timelimit": [None, None],
            "ignore_result": True,
        },
        "properties": {
            "correlation_id": uuid,
            "reply_to": uuid,
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": uuid,
        },
    }
