"""One form for every line: ours, libraries', warnings, and the error that ends a thread; no secret in any."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import warnings
from contextlib import contextmanager, redirect_stderr
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from eni_tasks.observability.logs import CHATTY, configure, logger
from eni_tasks.settings import Settings
from eni_tasks.tasks.app import make_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def configured(*, json: bool) -> Iterator[io.StringIO]:
    """Logging set up; gives what is written, and puts everything back."""
    root, hooks = logging.getLogger(), (sys.excepthook, threading.excepthook)
    handlers, levels = root.handlers[:], {name: logging.getLogger(name).level for name in ("", *CHATTY)}
    for each in logging.Logger.manager.loggerDict.values():
        if isinstance(each, logging.Logger):
            each.disabled = False  # import-linter may have run here before: it switches off the loggers that it finds
    said = io.StringIO()
    with redirect_stderr(said):
        configure(json=json, level="info")
    yield said
    sys.excepthook, threading.excepthook = hooks
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


@pytest.fixture
def lines() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """What was logged, as a machine reads it."""
    with configured(json=True) as said:
        yield lambda: [json.loads(line) for line in said.getvalue().splitlines()]


def test_an_event_is_a_word_with_fields_and_context(lines):
    with structlog.contextvars.bound_contextvars(node="node-1", task="eni.maintain_node"):
        logger().warning("claim_lost", fence=7)
    (line,) = lines()
    assert list(line)[:3] == ["timestamp", "level", "event"]
    del line["timestamp"]
    assert line == {
        "level": "warning",
        "event": "claim_lost",
        "node": "node-1",
        "task": "eni.maintain_node",
        "fence": 7,
    }


def test_a_librarys_line_has_the_same_form_and_says_whose_it_is(lines):
    logging.getLogger("some.library").warning("%s of\n%d", "line", 2)
    (line,) = lines()
    assert (line["level"], line["event"], line["logger"]) == ("warning", "line of\n2", "some.library")


@pytest.mark.parametrize("name", CHATTY)
def test_chatty_libraries_are_heard_when_something_is_wrong(lines, name):
    logging.getLogger(name).info("request sent")
    logging.getLogger(name).warning("no answer")
    assert [line["event"] for line in lines()] == ["no answer"]


def test_less_severe_than_asked_for_is_not_written(lines):
    logger().debug("ec2_called")
    assert lines() == []


def test_a_warning_is_a_line(lines):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("this goes\naway", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(capture=False)
    (line,) = lines()
    assert line["logger"] == "py.warnings"
    assert "this goes" in line["event"]


def test_a_task_that_is_refused_says_so_once_with_its_name_and_id(lines):
    with make_app(Settings()) as app:
        result = app.tasks["eni.maintain_node"].apply(args=["Bad_Name"])
    (line,) = lines()
    assert (line["level"], line["event"]) == ("warning", "task_refused")
    assert (line["task"], line["task_id"]) == ("eni.maintain_node", result.id)
    assert "'Bad_Name' is not the name of a node" in line["error"]


def fails(words: str = "it failed") -> None:
    raise RuntimeError(words)


def test_an_error_that_ends_a_thread_is_one_line(lines):
    thread = threading.Thread(target=fails)
    thread.start()
    thread.join()
    (line,) = lines()
    assert (line["level"], line["event"]) == ("critical", "unhandled_error")
    assert "in fails" in line["exception"]


def test_an_error_that_ends_the_process_is_one_line(lines):
    try:
        fails()
    except RuntimeError as error:
        sys.excepthook(RuntimeError, error, error.__traceback__)
    (line,) = lines()
    assert line["event"] == "unhandled_error"
    assert "in fails" in line["exception"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:hush@h/0", "redis://:****@h/0"),
        ("rediss://me:hush@h:1/0", "rediss://me:****@h:1/0"),
        ("redis://me:hu@hush@h/0", "redis://me:****@h/0"),
        ("http://me:hush@proxy:3128", "http://me:****@proxy:3128"),
        ("redis://h:6379/0", "redis://h:6379/0"),
        ("https://h/path?mail=a:b@c", "https://h/path?mail=a:b@c"),
    ],
)
def test_the_password_of_a_url_is_masked_wherever_it_stands(lines, url, shown):
    logger().info("seen", url=url, nested={"urls": [url]})
    logging.getLogger("some.library").error("lost %s", url)
    try:
        fails(url)
    except RuntimeError:
        logger().exception("failed")
    ours, theirs, trace = lines()
    assert ours["url"] == shown
    assert ours["nested"] == {"urls": [shown]}
    assert theirs["event"] == f"lost {shown}"
    assert f"RuntimeError: {shown}" in trace["exception"]
    assert "hush" not in json.dumps([ours, theirs, trace])


def test_a_trace_for_people_shows_no_variables():
    with configured(json=False) as said:
        password = "hush"  # noqa: S105 - what a trace must not show
        try:
            fails("it failed" if password else "")
        except RuntimeError:
            logger().exception("failed")
    assert "in fails" in said.getvalue()
    assert "hush" not in said.getvalue()
