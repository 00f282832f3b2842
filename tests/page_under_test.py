"""The status page as people get it: from a real exporter process."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import urllib3
from processes_under_test import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from processes_under_test import Process


class Page:
    """A status page, and one who asks for it."""

    def __init__(self, url: str, process: Process) -> None:
        self.url, self.process = url, process
        self._http = urllib3.PoolManager(retries=False, timeout=30.0, maxsize=20)

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> urllib3.BaseHTTPResponse:
        return self._http.request(method, self.url + path, headers=headers)

    def html(self, path: str = "/", status: int = 200) -> str:
        """The page at a path, which comes with a status."""
        answer = self.ask(path)
        assert answer.status == status, answer.data
        return answer.data.decode()

    def close(self) -> None:
        self._http.clear()

    def events(self) -> list[dict[str, Any]]:
        """What the process logged."""
        return [json.loads(line) for line in self.process.said.splitlines()]


@contextmanager
def page_of(folder: Path, redis_url: str, cluster: str, **settings: str) -> Iterator[Page]:
    """Run an exporter on a state, and give its status page."""
    environment = {
        "ENI_TASKS_REDIS_URL": redis_url,
        "ENI_TASKS_CLUSTER": cluster,
        "ENI_TASKS_PAGE_PORT": "0",
        **{f"ENI_TASKS_{name}": value for name, value in settings.items()},
    }
    with running(folder / "exporter.log", "workers.exporter", "--port", "0", **environment) as process:
        line = json.loads(process.until(lambda: "\n" in process.said and process.said.partition("\n")[0], "it listens"))
        page = Page(f"http://127.0.0.1:{line['page_port']}", process)
        yield page
        page.close()
