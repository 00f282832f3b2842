"""The nodes as seen from outside our system: machines that come and go, and agents that report their pods.

What the agents do is as stubborn as real ones are: a report that the API server didn't take is made
again. They note which versions of the object fall into the time in which an address was in use, for the verdict.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import urllib3

from eni_tasks.domain.addresses import expanded
from eni_tasks.sandbox.ec2.records import INSTANCE_TYPES
from eni_tasks.sandbox.fleet.agents import KEPT, MARKED, READY, RELEASED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from eni_tasks.sandbox.ec2.records import Instance, Interface
    from eni_tasks.sandbox.running import Sandbox

T = TypeVar("T")
Position = tuple[int, int]  # of a version among all: how often etcd had been restored, and the resourceVersion

PRE_ALLOCATE = 8
NODES_PATH = "/apis/cilium.io/v2/ciliumnodes"
INSIST_SECONDS = 30.0
EXCHANGES_PER_STEP = 0.08
# A share of the nodes goes up and down, each for so many steps that there is something to give back; few are exchanged.
UNSTEADY_SHARE, TURNS_PER_STEP, SWING, EXCHANGED_SHARE = 0.5, 0.05, 8, 0.1
LATE_SHARE = 0.3  # of the answers to marks: not in this report, but in a later one
NEVER: Position = (10**9, 0)


def addresses_of(interface: Interface) -> list[str]:
    """The addresses that pods can get from an interface, in its prefixes, too."""
    return [address for name in (*interface.addresses, *interface.prefixes) for address in expanded(name)]


@dataclass
class Agent:
    """One node: its machine, and the addresses that its pods use (`most` of them at any time).

    `lost` are addresses that its object shows since etcd was restored, and that its machine had given back by then.
    What becomes of a pod that gets one is the restore's doing, and not judged: no pod gets one.
    """

    name: str
    instance_id: str
    spec: dict[str, Any]
    room: int
    used: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    most: int = 0
    unsteady: bool = False
    falling: bool = False


class Nodes:
    """All of them, and their machines.

    Args:
        sandbox: where they live.
        rng: decides what the pods do.
    """

    def __init__(self, sandbox: Sandbox, rng: Random) -> None:
        self._ec2 = sandbox.ec2
        self._url = sandbox.kube._url + NODES_PATH
        self._world = sandbox.fleet._world
        self._rng = rng
        self._http = urllib3.PoolManager(retries=False, timeout=3.0)
        self.agents: dict[str, Agent] = {}
        # Instance and address → when it was in use: the first and the last version that an agent saw meanwhile.
        self.uses: dict[tuple[str, str], list[list[Position]]] = defaultdict(list)
        self.impostors: set[str] = set()
        self._restores = 0
        self.machine_of: dict[str, str] = {}  # every interface that was ever attached
        self.meanwhile: Callable[[], object] = lambda: None  # what goes on while something is insisted on
        for obj in sandbox.fleet.objects():
            self._take(obj["metadata"]["name"], obj["spec"]["instance-id"], obj["spec"])

    def close(self) -> None:
        self._http.clear()

    def _take(self, name: str, instance_id: str, spec: dict[str, Any], interfaces: int | None = None) -> None:
        limits = INSTANCE_TYPES[spec["eni"]["instance-type"]]
        places = limits.cards[0] if interfaces is None else interfaces
        # So many pods that the free addresses wanted besides them still fit.
        room = places * (limits.ipv4_per_interface - 1) - PRE_ALLOCATE
        ipam = {key: value for key, value in spec.get("ipam", {}).items() if key != "pool"}
        own = {"instance-id": instance_id, "eni": spec["eni"], "ipam": ipam}
        unsteady = self._rng.random() < UNSTEADY_SHARE
        self.agents[name] = Agent(name, instance_id, own, max(0, room), unsteady=unsteady)

    # -- pods --------------------------------------------------------------------------------------
    def step(self) -> None:
        """Pods come or go on one node, more of them coming; now and then a machine is exchanged."""
        agent = self._rng.choice(list(self.agents.values()))
        exchanged = EXCHANGES_PER_STEP * (EXCHANGED_SHARE if agent.unsteady else 1)
        if self._rng.random() < exchanged:
            self._rng.choice((self.replace, self.replace_in_place, self.exchange))(agent.name)
        else:
            change = self._rng.randint(-3, 6)
            if agent.unsteady:
                agent.falling ^= self._rng.random() < TURNS_PER_STEP
                change = -SWING if agent.falling else SWING
            self.report(agent, change, late=self._rng.random() < LATE_SHARE)

    def report(self, agent: Agent, change: int = 0, *, late: bool = False) -> bool:
        """Let `change` pods come or go, and report what is used; says whether the object shows that now.

        Marks of addresses to be released are answered as well, unless the agent is `late` with that.
        """
        obj = self.get(agent.name)
        if obj is None or obj["spec"]["instance-id"] != agent.instance_id:
            return False
        pool = set(obj["spec"].get("ipam", {}).get("pool", {}))
        marks = obj.get("status", {}).get("ipam", {}).get("release-ips", {})
        leaving = {address for address, state in marks.items() if state != KEPT}
        free = sorted(pool - agent.used - agent.lost - leaving)
        wanted = min(len(free), max(0, min(change, agent.room - len(agent.used))))
        come, go = set(free[:wanted]), set(sorted(agent.used)[: max(0, -change)])
        self._ec2.use_addresses(sorted(come))
        self._note_uses(agent, come, go, obj)
        agent.used = (agent.used | come) - go
        agent.most = max(agent.most, len(agent.used))
        self._ec2.free_addresses(sorted(go))
        shown = set(obj.get("status", {}).get("ipam", {}).get("used", {}))
        patch: dict[str, Any] = dict.fromkeys(shown - agent.used)
        patch |= {address: {"owner": f"default/pod-{address}"} for address in agent.used - shown}
        answers = {} if late else _answers(marks, pool, agent.used)
        if not patch and not answers:
            return True
        ipam = {"used": patch, "release-ips": answers} if answers else {"used": patch}
        # Real agents replace the whole status of the version that they have seen.
        seen = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        code, _ = self.call("PATCH", f"/{agent.name}/status", {"metadata": seen, "status": {"ipam": ipam}})
        return code == 200

    def _note_uses(self, agent: Agent, come: Iterable[str], go: Iterable[str], obj: dict[str, Any]) -> None:
        position = (self._restores, int(obj["metadata"]["resourceVersion"]))
        for address in come:
            self.uses[agent.instance_id, address].append([position, NEVER])
        for address in go:
            self.uses[agent.instance_id, address][-1][1] = position

    # -- machines ----------------------------------------------------------------------------------
    def replace(self, name: str) -> str:
        """Delete a node with its machine, and create it again under its name with another machine."""
        obj = self._insist("GET", f"/{name}")
        self._remove(name, obj)
        return self._create(name, obj["spec"])

    def replace_in_place(self, name: str) -> str:
        """Give a node another machine; its object stays, as when the new agent is faster than the garbage collector."""
        obj = self._insist("GET", f"/{name}")
        self._terminate(self.agents.pop(name), obj)
        instance, eni = self._launch(name, obj["spec"])
        used = dict.fromkeys(obj.get("status", {}).get("ipam", {}).get("used", {}))
        self._insist("PATCH", f"/{name}", {"spec": {"instance-id": instance.id, "eni": eni, "ipam": {"pool": None}}})
        self._insist("PATCH", f"/{name}/status", {"status": {"ipam": {"used": used}}})
        self.agents[name].most = len(used)  # so many it may still have been given
        return instance.id

    def exchange(self, name: str) -> str:
        """Take a node away for good, and add one with a new name."""
        obj = self._insist("GET", f"/{name}")
        self._remove(name, obj)
        new = f"{name.partition('.')[0]}.{self._rng.randrange(10**6):06d}"
        self._create(new, obj["spec"])
        return new

    def _remove(self, name: str, obj: dict[str, Any]) -> None:
        agent = self.agents.pop(name)
        self._insist("DELETE", f"/{name}", fine=(404,))
        self._terminate(agent, obj)

    def note_interfaces(self) -> None:
        """Note whose interfaces there are, before some go."""
        self.machine_of |= {each.id: each.instance_id for each in self._ec2.view().interfaces if each.instance_id}

    def _terminate(self, agent: Agent, obj: dict[str, Any]) -> None:
        self.note_interfaces()
        self._note_uses(agent, (), agent.used, obj)
        self._ec2.free_addresses(sorted(agent.used))
        self._patiently(lambda: self._ec2.terminate_instance(agent.instance_id))

    def _launch(self, name: str, spec: dict[str, Any]) -> tuple[Instance, dict[str, Any]]:
        eni = spec["eni"]
        # Now and then a machine takes fewer interfaces than the table of its type says.
        fewer = INSTANCE_TYPES[eni["instance-type"]].cards[0] - 1 if self._rng.random() < 0.25 else None
        options = {"groups": [self._world["node_group"]], "max_interfaces": fewer}
        instance = self._patiently(
            lambda: self._ec2.launch_instance(eni["instance-type"], eni["node-subnet-id"], **options)
        )
        self._take(name, instance.id, spec, fewer)
        return instance, eni

    def _patiently(self, act: Callable[[], T]) -> T:
        """Do something to a machine as soon as EC2 lets it: other troubles use up its quota, or hide new ids."""
        while True:
            try:
                return act()
            except RuntimeError:
                self.meanwhile()
                time.sleep(0.1)

    def _create(self, name: str, spec: dict[str, Any]) -> str:
        instance, _ = self._launch(name, spec)
        self._post(name, self.agents[name].spec)
        return instance.id

    def _post(self, name: str, spec: dict[str, Any]) -> None:
        head = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}}
        self._insist("POST", "", {**head, "spec": spec}, fine=(409,))

    # -- what others do to the objects -------------------------------------------------------------
    def add_impostor(self, agent: Agent) -> str:
        """Add an object that names the instance of another node; returns its name."""
        name = f"impostor.{self._rng.randrange(10**6):06d}"
        self.impostors.add(name)
        self._post(name, agent.spec)
        return name

    def remove_impostor(self, name: str) -> str:
        """Remove it; returns what our system wrote into it as the reason why it gets nothing."""
        obj = self.get(name) or {}
        self.impostors.discard(name)
        self._insist("DELETE", f"/{name}", fine=(404,))
        error: str = obj.get("status", {}).get("ipam", {}).get("operator-status", {}).get("error", "")
        return error

    def restored(self) -> None:
        """Note that etcd was restored: versions count from an earlier one, and pools show what was given back since."""
        self._restores += 1
        held: dict[str, set[str]] = defaultdict(set)
        for interface in self._ec2.view().interfaces:
            held[interface.instance_id].update(addresses_of(interface))
        for name, obj in self.objects().items():
            if agent := self.agents.get(name):
                agent.lost |= obj["spec"].get("ipam", {}).get("pool", {}).keys() - held[agent.instance_id]

    def return_after_restore(self) -> None:
        """Do what follows in a cluster whose etcd was restored: agents write what they are, and others' objects go."""
        objects = self.objects()
        for name in objects.keys() - self.agents.keys() - self.impostors:
            self._insist("DELETE", f"/{name}", fine=(404,))
        for name, agent in list(self.agents.items()):
            if name not in objects:
                self._post(name, agent.spec)
            elif objects[name]["spec"]["instance-id"] != agent.instance_id:
                spec = {**agent.spec, "ipam": {"pool": None}}
                self._insist("PATCH", f"/{name}", {"spec": spec})

    # -- the API server ----------------------------------------------------------------------------
    def get(self, name: str) -> dict[str, Any] | None:
        """One object, or None if it isn't there or can't be had now."""
        code, obj = self.call("GET", f"/{name}")
        return obj if code == 200 else None

    def objects(self) -> dict[str, dict[str, Any]]:
        """All objects, by name."""
        return {obj["metadata"]["name"]: obj for obj in self._insist("GET", "")["items"]}

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """One request; the code is 0 when there was no answer."""
        headers = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        try:
            answer = self._http.request(method, self._url + path, json=body, headers=headers)
            return answer.status, answer.json()
        except (urllib3.exceptions.HTTPError, ValueError):
            return 0, {}

    def _insist(self, method: str, path: str, body: Any = None, *, fine: tuple[int, ...] = ()) -> dict[str, Any]:
        deadline = time.monotonic() + INSIST_SECONDS
        while time.monotonic() < deadline:
            code, answer = self.call(method, path, body)
            if 200 <= code < 300 or code in fine:
                return answer
            self.meanwhile()
            time.sleep(0.1)
        raise TimeoutError(f"{method} {path}: the API server refuses for {INSIST_SECONDS} s: {code} {answer}")


def _answers(marks: dict[str, str], pool: set[str], used: set[str]) -> dict[str, str | None]:
    """What an agent of Cilium 1.12 to 1.19 makes of its marks; None: the entry goes."""
    answers: dict[str, str | None] = {}
    for address, state in marks.items():
        if state == MARKED:
            answers[address] = READY if address in pool and address not in used else KEPT
        elif state == RELEASED and address not in pool:
            answers[address] = None
    return answers
