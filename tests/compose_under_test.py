"""Compose without containers: the services of our image as processes on this machine, as the file says.

Commands, environment, order, health checks and names of volumes are the file's own. What containers would give
is replaced: hosts by addresses on loopback, fixed ports by free ones, volumes and /tmp by folders; the image
by `installed`. Redis runs with the file's own options, and the tests' kube-apiserver stands in for k3s.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Self

import redis_servers
import yaml
from contract.kube_servers import ADMIN, KubeTarget, real_server
from installed import ROOT, Installed
from processes_under_test import Process

from eni_tasks.sandbox.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE_SECONDS = 60.0
OTHERS = {"redis", "kubernetes"}  # not of our image, and replaced


class Compose:
    """The running services.

    Args:
        folder: for volumes and logs.
        installed: the image's content.
        chosen: what `.env` would say.
    """

    def __init__(self, folder: Path, installed: Installed, chosen: dict[str, str]) -> None:
        self._folder, self._installed, self._stack = folder, installed, ExitStack()
        text = (ROOT / "compose/compose.yaml").read_text()
        self.services: dict[str, dict[str, Any]] = yaml.safe_load(_interpolate(text, chosen))["services"]
        self.ports = {port: str(free_port()) for port in ("4566", "5555", "9464", "9465")}
        self.running: dict[str, Process] = {}
        self._done: set[str] = set()

    def __enter__(self) -> Self:
        options = tuple(self.services["redis"]["command"][1:])
        redis_url = self._stack.enter_context(redis_servers.running(options=options))
        self._api = self._stack.enter_context(real_server())
        self._hosts = {
            "redis://redis:6379/0": redis_url,
            "https://kubernetes:6443": self._api.url,
            "http://ec2:4566": f"http://127.0.0.1:{self.ports['4566']}",
        }
        kube = self._folder / "kube"
        kube.mkdir()
        _write_as_k3s(self._api, kube / "k3s.yaml")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running.values():
            process.popen.kill()
            process.popen.wait()
        self._stack.close()

    def up(self) -> None:
        """Start our services, each when what it depends on is as it asks."""
        waiting = [name for name, service in self.services.items() if "build" in service]
        while waiting:
            name = next(name for name in waiting if self._needs(name) <= self._done)
            for other, how in self.services[name].get("depends_on", {}).items():
                if other not in OTHERS:
                    self._await(other, how["condition"])
            self._start(name)
            waiting.remove(name)
            self._done.add(name)

    def healthy(self, name: str) -> bool:
        """Whether the service's own health check passes."""
        kind, *command = self.services[name]["healthcheck"]["test"]
        return self.run(name, *(["sh", "-c", *command] if kind == "CMD-SHELL" else command)).returncode == 0

    def run(self, name: str, *command: str) -> subprocess.CompletedProcess[str]:
        """`docker compose exec NAME COMMAND`."""
        return subprocess.run(
            self._here(name, command),
            env=self._environment(name),
            cwd=self._scratch(name),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def down(self) -> dict[str, int]:
        """End all with SIGTERM, the last one first; returns their exit codes."""
        return {name: process.end() for name, process in reversed(self.running.items())}

    def _needs(self, name: str) -> set[str]:
        return set(self.services[name].get("depends_on", {})) - OTHERS

    def _await(self, name: str, condition: str) -> None:
        process = self.running[name]
        if condition == "service_completed_successfully":
            assert process.popen.wait(DEADLINE_SECONDS) == 0, process.said
        else:
            process.until(lambda: self.healthy(name), f"{name} is healthy")

    def _start(self, name: str) -> None:
        service = self.services[name]
        command = [*service.get("entrypoint", ["eni-tasks"]), *service.get("command", [])]
        log = self._folder / f"{name}.log"
        with log.open("wb") as output:
            popen = subprocess.Popen(
                self._here(name, command),
                env=self._environment(name),
                cwd=self._scratch(name),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.running[name] = Process(popen, log)

    def _environment(self, name: str) -> dict[str, str]:
        given = self.services[name].get("environment", {})
        # The image's own, and no more than that.
        image = {"PATH": f"{self._installed.bin}:/usr/bin:/bin", "HOME": "/", "PYTHONUNBUFFERED": "1"}
        return image | dict(zip(given, self._here(name, given.values()), strict=True))

    def _scratch(self, name: str) -> Path:
        folder = self._folder / f"{name}.tmp"
        folder.mkdir(exist_ok=True)
        return folder

    def _here(self, name: str, words: Any) -> list[str]:
        """Containers' hosts, ports and folders, as they are here."""
        changes = {
            **self._hosts,
            "0.0.0.0": "127.0.0.1",  # noqa: S104 - in a container; here it is loopback
            "/kube": str(self._folder / "kube"),
            "/tmp": str(self._scratch(name)),  # noqa: S108 - of the container
            **self.ports,
        }
        return [_replace(word.replace("$$", "$"), changes) for word in words]


def _write_as_k3s(api: KubeTarget, path: Path) -> None:
    """Its certificate lies inside, and its address is right only on its own host."""
    config = json.loads(api.kubeconfig(path, ADMIN).read_text())
    assert api.ca_file
    authority = base64.b64encode(api.ca_file.read_bytes()).decode()
    config["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:6443", "certificate-authority-data": authority}
    path.write_text(json.dumps(config))


def _replace(word: str, changes: dict[str, str]) -> str:
    pattern = "|".join(re.escape(old) for old in changes)
    return re.sub(pattern, lambda found: changes[found[0]], word)


def _interpolate(text: str, chosen: dict[str, str]) -> str:
    return re.sub(r"\$\{(\w+):([-?])([^}]*)\}", lambda found: chosen.get(found[1], found[3]), text)


@contextmanager
def running(folder: Path, **chosen: str) -> Iterator[Compose]:
    """Everything of our image, up."""
    with Compose(folder, Installed(folder / "image"), chosen) as compose:
        compose.up()
        yield compose
