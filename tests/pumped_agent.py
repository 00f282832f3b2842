"""One simulated agent on a node of a pumped system: it reads its object, lets pods come and go, and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pumped_world import World

    from eni_tasks.sandbox.fleet import Agent


class AgentOn:
    """The agent of one node.

    Args:
        system: where the node is.
        kind: the agent's kind; `upgrade` exchanges it.
        name: the node's name.
    """

    def __init__(self, system: World, kind: type[Agent], name: str = "node") -> None:
        self._system = system
        self._name = name
        self.agent = kind(system.object(name))
        self.report()

    def upgrade(self, kind: type[Agent], *, reports: bool = True) -> None:
        """Exchange the agent for one of another version; pods go on."""
        self.agent = kind(self._system.object(self._name), self.agent.used)
        if reports:
            self.report()

    def pods(self, count: int, *, reports: bool = True) -> list[str]:
        """Let pods come or go until there are `count`, and report; returns the addresses that they use."""
        self.observe()
        before = set(self.agent.used)
        self.agent.set_pod_count(count)
        self._system.ec2.use_addresses(self.agent.used)
        self._system.ec2.free_addresses(sorted(before.difference(self.agent.used)))
        self._system.kube.core.set_pods(self._name, self.agent.used, waiting=getattr(self.agent, "waiting", 0))
        if reports:
            self.report()
        return self.agent.used

    def observe(self) -> None:
        """Take over what the object shows now."""
        self.agent.observe(self._system.object(self._name))

    def report(self) -> None:
        """Write the spec, then the status."""
        self.observe()
        obj = self._system.object(self._name)
        wanted = self.agent.request(obj)["spec"]
        if wanted != obj["spec"]:
            self._system.change(self._name, lambda body: body.update(spec=wanted))
        obj = self._system.object(self._name)
        status = self.agent.report(obj).get("status", {})
        if status != obj.get("status", {}):
            self._system.change(self._name, lambda body: body.update(status=status), status=True)
