"""Names and arguments of tasks are a wire format; wrong arguments are refused before anything is touched."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from eni_tasks.errors import InvalidInput, StateUnavailable
from eni_tasks.model.node import node_name
from eni_tasks.settings import Settings
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.registry import QUEUES, TASK_QUEUES

if TYPE_CHECKING:
    from eni_tasks.tasks.app import EniApp

WIRE = {
    "eni.maintain_node": ["node"],
    "eni.publish_node": ["node"],
    "eni.refresh_inventory": [],
    "eni.refresh_instances": [],
    "eni.collect_orphans": ["dry_run"],
    "eni.resync_node": ["node"],
    "eni.unlock_node": ["node"],
    "eni.unlock_pass": ["name"],
    "eni.pause": ["who", "why"],
    "eni.resume": [],
}


@pytest.fixture(scope="module")
def app() -> EniApp:
    return make_app(Settings())  # connects to nothing


def test_names_and_arguments_are_what_others_rely_on(app: EniApp) -> None:
    ours = {name: task for name, task in app.tasks.items() if name.startswith("eni.")}
    assert {name: list(inspect.signature(task.run).parameters) for name, task in ours.items()} == WIRE
    assert {name: route["queue"] in QUEUES for name, route in TASK_QUEUES.items()} == dict.fromkeys(WIRE, True)


@pytest.mark.parametrize(
    ("task", "args", "kwargs", "words"),
    [
        ("eni.maintain_node", [], {}, "eni.maintain_node: missing a required argument: 'node' (its arguments: node)"),
        ("eni.maintain_node", ["n", "m"], {}, "too many positional arguments (its arguments: node)"),
        ("eni.maintain_node", ["n"], {"nod": "m"}, "got an unexpected keyword argument 'nod'"),
        ("eni.pause", ["Ada"], {}, "missing a required argument: 'why' (its arguments: who, why)"),
        ("eni.pause", [], {"why": "x"}, "missing a required argument: 'who'"),
        ("eni.pause", ["Ada", "x"], {"why": "y"}, "multiple values for argument 'why'"),
        ("eni.resume", ["x"], {}, "too many positional arguments (its arguments: none)"),
    ],
    ids=["missing", "too-many", "unknown", "one-missing", "other-missing", "twice", "none-taken"],
)
def test_wrong_arguments_are_named(app: EniApp, task: str, args: list[Any], kwargs: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        app.tasks[task](*args, **kwargs)
    assert words in str(raised.value)
    assert app._services is None


@pytest.mark.parametrize("name", ["node-1", "ip-10-0-1-2.ec2.internal", "0", "a" * 253])
def test_names_of_nodes(name: str) -> None:
    assert node_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "Node", "a b", "-a", "a-", "a/b", "a\n", "a" * 254, None, 7, ["a"], {"node": "a"}, b"a"], ids=repr
)
def test_what_is_no_name_of_a_node(name: object) -> None:
    with pytest.raises(InvalidInput, match="is not the name of a node"):
        node_name(name)


def test_a_task_without_redis_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    app = make_app(Settings(redis_url=SecretStr("redis://127.0.0.1:1/0")))
    with capture_logs() as lines, caplog.at_level("INFO", "celery.app.trace"):
        result = app.tasks["eni.pause"].apply(args=["Ada", "a test"])
    assert isinstance(result.result, StateUnavailable)
    assert [line["event"] for line in lines] == ["state_unavailable"]
    assert [record.levelname for record in caplog.records if record.name == "celery.app.trace"] == ["INFO"]
    assert all(record.exc_info is None for record in caplog.records)
