"""Old and new workers side by side: what the version before wrote is served by this one (promise 12).

`state_before.json` is what Redis held when a worker of that version died while an attach was under way. Make it
again only together with another layout number in `eni_tasks.state.keys`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pumped
import pytest

from eni_tasks.model.network import NodeName
from eni_tasks.services.journal import decode

if TYPE_CHECKING:
    from pumped import System

    from eni_tasks.model.cilium_node import CiliumNode

NODE = NodeName("node")
BEFORE = (Path(__file__).parents[2] / "vectors" / "state_before.json").read_text()
DIED_AT = 1_796_030_000  # seconds; later than that by less than a day are all times of the file
MILLISECONDS, SECONDS = re.compile(r"\b179\d{10}(?=\.0\b|\b)(?!\d)"), re.compile(r"\b179\d{7}\.\d+")


def died_before(system: System) -> None:
    """EC2 and Redis as the worker left them: the interface is made, and not attached."""
    instance = system.add_node(eni={"first-interface-index": 1})
    system.settle_reads()
    creation = decode(records(system)["journal"][NODE].encode())
    request = creation.request
    assert request.instance_id == instance.id
    made = system.services.ec2.create_interface(
        subnet_id=request.subnet_id,
        secondary_count=request.secondary_count,
        security_groups=request.security_groups,
        description=request.description,
        tags=request.tags,
        client_token=creation.token,
    )
    assert made.id == creation.created.id
    system.empty_redis()
    for name, value in records(system).items():
        load(system, f"{{eni:{system.cluster}}}:v1:{name}", value)
    system.later(pumped.LEASE_SECONDS + 60)


def records(system: System) -> dict[str, Any]:
    """The file, for this cluster and with its times moved to now."""
    ahead = system.services.state.now() - DIED_AT - 1000
    text = MILLISECONDS.sub(lambda found: str(int(found[0]) + round(ahead * 1000)), BEFORE)
    text = SECONDS.sub(lambda found: str(float(found[0]) + ahead), text)
    loaded: dict[str, Any] = json.loads(text.replace("{cluster}", system.cluster))
    loaded["nodes"] = {NODE: msgspec.json.encode(stored(system))}
    meta = stored(system).metadata
    old = loaded["versions"][NODE].split()
    loaded["versions"] = {NODE: " ".join([meta.resource_version, meta.uid, *old[2:]])}
    return loaded


def stored(system: System) -> CiliumNode:
    return system.services.node_feed.pages().__next__().objects[0]


def load(system: System, key: str, value: Any) -> None:
    if isinstance(value, dict):
        system.redis.hset(key, mapping=value)
    elif isinstance(value, list):
        system.redis.zadd(key, dict(value))
    else:
        system.redis.set(key, value)


def test_what_the_version_before_began_is_finished(system: System) -> None:
    died_before(system)
    system.fresh()
    system.settle(within_seconds=300)
    assert system.status().ready
    assert len(system.pool()) == 8
    assert system.mutations() == {"Attach": 1, "Modify": 1}
    assert system.clean()


@pytest.mark.parametrize("of", ["journal", "memory", "facts", "infrastructure", "work"])
def test_fields_that_this_version_does_not_know_are_passed_over(system: System, of: str) -> None:
    """A newer version runs beside this one, and has written more."""
    died_before(system)
    if of in ("journal", "memory"):
        key = f"{{eni:{system.cluster}}}:v1:{of}"
        entry = json.loads(system.redis.hget(key, NODE) or b"{}")
        system.redis.hset(key, NODE, json.dumps(entry | {"news": {"of": "tomorrow"}}))
    else:
        for key in [key for key in system._all_keys() if f":v1:{of}" in key.decode()]:
            system.redis.hset(key, "tomorrow", 1)
    system.settle(within_seconds=300)
    assert system.status().ready
    assert system.clean()


@pytest.mark.parametrize("step", ["intent", "created", "attaching", "attached", "undo"])
def test_each_step_that_the_version_before_writes_is_understood(step: str) -> None:
    entry: str = json.loads(BEFORE)["journal"][NODE]
    assert decode(entry.replace('"step":"attaching"', f'"step":"{step}"').encode()).step == step
