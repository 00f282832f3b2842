"""Answers that several open pages share, so that ten of them cost Redis what one does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Kept(Generic[Answer]):
    """Keeps the answer for each name for a while, an error as well as a value.

    If errors were not kept, each of the pages that wait for a silent Redis would wait for it in turn.

    Args:
        seconds: how long an answer is given again.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        # Each answer, and the monotonic time until which it is given: without end while it is being read.
        self._answers: dict[str, tuple[Future[Answer], float]] = {}

    def get(self, name: str, read: Callable[[], Answer]) -> Answer:
        """Give the answer for a name, and read it if there is none that is young enough.

        Args:
            name: of what is read.
            read: reads it; one thread does, and the others wait for its answer.

        Raises:
            Exception: what `read` raised.
        """
        with self._lock:
            now = time.monotonic()
            self._answers = {each: answer for each, answer in self._answers.items() if answer[1] > now}
            known = self._answers.get(name)
            answer = known[0] if known else Future()
            if known is None:
                self._answers[name] = (answer, float("inf"))
        if known is None:
            try:
                answer.set_result(read())
            except Exception as error:  # noqa: BLE001 - it is raised below, in each thread that waits
                answer.set_exception(error)
            with self._lock:
                self._answers[name] = (answer, time.monotonic() + self._seconds)
        return answer.result()
