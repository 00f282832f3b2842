"""The whole system on a laptop: servers, then the product's processes, then the fleet; ended in reverse."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.bootstrap import Services
from eni_tasks.model.ec2_actions import AWS_RATE_LIMITS
from eni_tasks.sandbox.ec2.admin import Ec2Admin
from eni_tasks.sandbox.fleet import Fleet
from eni_tasks.sandbox.kube.admin import KubeAdmin, write_kubeconfig
from eni_tasks.sandbox.processes import Children, free_port
from eni_tasks.settings import load
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.messages import CeleryMessages

CLUSTER = "sandbox"
# The laptop's EC2 has no quota on calls unless asked to, so a fleet fills as fast as the machine can.
NO_RATE_LIMITS = ",".join(f"{action}=0:0" for action in AWS_RATE_LIMITS)


class Sandbox:
    """Everything that runs. Use as a context manager: leaving it ends all processes.

    Args:
        progress: called with one short line for each thing that is started.
        ec2_arguments: more arguments for the EC2 server, such as a latency.
        lasting_objects: the API server may be started again: it stays where it is, and keeps its objects.
        aws_rate_limits: keep to AWS's documented rate limits, and let the EC2 server throttle by them.
        with_flower: start Flower too.
        start_system: start the product's processes at once; else `start_system` does it later.
        settings: more ENI_TASKS_ variables.
    """

    def __init__(  # noqa: PLR0913 - what a caller may choose, each with a default
        self,
        progress: Callable[[str], None] = lambda _: None,
        *,
        ec2_arguments: tuple[str, ...] = (),
        lasting_objects: bool = False,
        aws_rate_limits: bool = False,
        with_flower: bool = True,
        start_system: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._progress = progress
        self._ec2_arguments = (*ec2_arguments, *(("--throttle", "1") if aws_rate_limits else ()))
        self._lasting_objects = lasting_objects
        self._rate_limits = {} if aws_rate_limits else {"ENI_TASKS_RATE_LIMITS": NO_RATE_LIMITS}
        self._with_flower = with_flower
        self._start_at_once = start_system
        self._settings = dict(settings or {})
        self.folder = Path(tempfile.mkdtemp(prefix="eni-tasks-sandbox-"))
        self.children = Children(self.folder)
        self.environment: dict[str, str] = {}
        self.flower_url = ""

    def __enter__(self) -> Self:
        try:
            self._start_servers()
            if self._start_at_once:
                self.start_system()
        except BaseException:
            self.children.stop()
            shutil.rmtree(self.folder, ignore_errors=True)  # the error has what a child said
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.children.stop()
        if kind is None or kind is KeyboardInterrupt:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            self._progress(f"Logs are kept in {self.folder}.")

    def _start_servers(self) -> None:
        self._progress("Starting Redis, an EC2 API and a Kubernetes API…")
        redis_url = self.children.start_redis()
        world: dict[str, Any] = self.children.start_server("ec2-api", "eni_tasks.sandbox.ec2", self._ec2_arguments)
        lasting = ("--port", str(free_port()), "--data", str(self.folder / "objects")) if self._lasting_objects else ()
        kube_url = self.children.start_server("kubernetes-api", "eni_tasks.sandbox.kube", lasting)["url"]
        self.ec2, self.kube = Ec2Admin(world["url"]), KubeAdmin(kube_url)
        kubeconfig = str(write_kubeconfig(self.folder / "kubeconfig", kube_url))
        self.fleet = Fleet(self.ec2, world, KubeClient(30.0, 8, kubeconfig))
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ENI_TASKS_", "AWS_"))}
        self.environment = {
            **inherited,
            "ENI_TASKS_REDIS_URL": redis_url,
            "ENI_TASKS_CLUSTER": CLUSTER,
            "ENI_TASKS_LOG_FORMAT": "console",
            **self._rate_limits,
            **self._settings,
            "AWS_ENDPOINT_URL": world["url"],
            "AWS_REGION": world["region"],
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "any-secret-will-do",  # a text of its own, so that tests find it in a log
            "AWS_EC2_METADATA_DISABLED": "true",
            "KUBECONFIG": kubeconfig,
        }

        own = {name: value for name, value in self.environment.items() if inherited.get(name) != value}
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in own.items()]
        lines.append(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH\n")
        (self.folder / "env").write_text("".join(lines))
        self._progress(f"For commands in another terminal: . {self.folder}/env")

    def start_system(self) -> None:
        """Start the watcher, a worker per queue, and Flower."""
        self._progress("Starting the watcher, a worker per queue and Flower…")
        for name in ("ec2", "apiserver", "resync", "watcher"):
            self.start(name)
        if self._with_flower:
            port = free_port()
            self.children.start("flower", "workers.flower", ["--no-auth", "--port", str(port)], self.environment)
            self.flower_url = f"http://127.0.0.1:{port}"

    def start(self, name: str, process: str = "") -> None:
        """Start one more process of the system.

        Args:
            name: a module of `workers`.
            process: its name among the children, if there is to be more than one.
        """
        self.children.start(process or name, f"workers.{name}", [], self.environment)

    def services(self) -> Services:
        """The use cases against this sandbox, in this process (which takes over its environment)."""
        for name in [name for name in os.environ if name.startswith(("ENI_TASKS_", "AWS_"))]:
            del os.environ[name]
        os.environ.update(self.environment)
        settings = load()
        return Services(settings, CeleryMessages(make_app(settings)))
