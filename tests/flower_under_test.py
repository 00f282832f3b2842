"""Flower as a process, and its HTTP side."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import urllib3
from processes_under_test import Process, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AUTH = "night:a,b:c"  # a comma and a colon: one password all the same


class Flower:
    """What a client of Flower sees."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._http = urllib3.PoolManager(retries=False, timeout=10.0)
        self.address = process.until(lambda: re.search(r"Visit me at (http://[0-9.:]+)", process.said), "Flower")[1]

    def get(self, path: str, auth: str = "") -> tuple[int, str]:
        """Status and body."""
        return self._call("GET", path, auth)

    def json(self, path: str, auth: str = AUTH) -> Any:
        """The body of a successful answer."""
        status, body = self.get(path, auth)
        assert status == 200, body
        return json.loads(body)

    def post(self, path: str, body: Any, auth: str = "") -> tuple[int, str]:
        """Status and body."""
        return self._call("POST", path, auth, body=json.dumps(body))

    def _call(self, method: str, path: str, auth: str, **options: Any) -> tuple[int, str]:
        headers = urllib3.make_headers(basic_auth=auth) if auth else {}
        answer = self._http.request(method, self.address + path, headers=headers, **options)
        return answer.status, answer.data.decode()

    def close(self) -> None:
        self._http.clear()


@contextmanager
def flower(folder: Path, *arguments: str, **environment: str) -> Iterator[Flower]:
    """Run Flower on a free port, its log as JSON."""
    log = folder / "flower.log"
    with running(log, "workers.flower", "--port", "0", *arguments, cwd=folder, **environment) as process:
        client = Flower(process)
        try:
            yield client
        finally:
            client.close()
