"""A worker process is killed before each thing that it does to the world around it, and another one finishes.

Real processes (forked warm), a real Redis, EC2 and API server over sockets. Each flow is played again and
again, killed one point later each time, until a run ends by itself; each time the end must be the same.
All messages of the dead are lost, too, and time passes until its claims run out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import redis_servers
from pumped import LEASE_SECONDS, System
from pumped_agent import AgentOn

from eni_tasks.domain.addresses import expanded
from eni_tasks.model.network import ownership
from eni_tasks.model.work import Pass
from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.sandbox.ec2.server import Ec2Server
from eni_tasks.sandbox.ec2.world import build_default_world
from eni_tasks.sandbox.fleet.agent120 import Agent120DualStack
from eni_tasks.sandbox.kube.admin import write_kubeconfig
from eni_tasks.sandbox.kube.server import KubeServer
from eni_tasks.state.connection import clock_offset_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TESTS = Path(__file__).parents[1]
DELAY_SECONDS = 180.0


class Workers:
    """Forks workers, and makes a world for each of them to die in."""

    def __init__(self, redis_url: str, folder: Path) -> None:
        self._redis_url = redis_url
        self._built = build_default_world(1)
        self._ec2, self._kube = Ec2Server(self._built.world), KubeServer()
        self._environment = {
            "AWS_ENDPOINT_URL": self._ec2.url,
            "AWS_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "tests",
            "AWS_EC2_METADATA_DISABLED": "true",
            "KUBECONFIG": str(write_kubeconfig(folder / "kubeconfig", self._kube.url)),
        }
        self._reader: Any = None  # the EC2 client of those who finish, made once

    @contextmanager
    def serving(self) -> Iterator[Workers]:
        command = [sys.executable, "-m", "interrupting.server"]
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, **self._environment, "PYTHONPATH": path}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with self._ec2, self._kube, pytest.MonkeyPatch.context() as patch:
            for name, value in self._environment.items():
                patch.setenv(name, value)
            with subprocess.Popen(command, env=environment, text=True, **pipes) as self._server:
                try:
                    yield self
                finally:
                    self._server.stdin.close()

    def killed(self, system: System, flow: str, kill_at: int) -> dict[str, Any]:
        """Let a worker go its way, and die at a point of it; says what it came to."""
        order = {
            "settings": system._settings,
            "flow": flow,
            "kill_at": kill_at,
            "clock_offset_seconds": clock_offset_seconds(),
        }
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    @contextmanager
    def world(self, *, prefixes: bool = False) -> Iterator[System]:
        """A system that has nothing yet."""
        # Minutes pass here without the periodic reads that would keep the facts young.
        settings = {
            "facts_max_age_seconds": 86_400,
            "release_excess": True,
            "prefix_delegation": prefixes,
            "release_delay_seconds": DELAY_SECONDS,
            "ipv6": True,
            "static_addresses": True,
        }
        system = System(self._redis_url, self._ec2, self._built, self._kube, **settings)
        self._reader = self._reader or system.services.ec2
        system.services.__dict__["ec2"] = self._reader
        system.ec2.reset_calls()
        try:
            yield system
        finally:
            system.ec2.clear_faults()
            for stored in self._kube.api.store.page(0, "").items:
                self._kube.api.store.delete(stored.body["metadata"]["name"])
            system.close()

    def finish(self, system: System) -> None:
        """Another process takes over when the claims of the dead have run out."""
        system.messages.waiting.clear()
        system.later(LEASE_SECONDS + 1)
        successor = system.process()
        successor.__dict__["ec2"] = self._reader
        system.settle(successor, within_seconds=300)
        if "pools" in system.object()["spec"]["ipam"]:
            # The agent lists what it is shown; what it does not list counts as given up.
            AgentOn(system, Agent120DualStack)
            system.settle(successor, within_seconds=60)

    def read_everything(self, system: System) -> None:
        """The next periodic read, and what follows from it."""
        system.later(60)
        system.resync()
        system.settle(within_seconds=60)


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with redis_servers.running() as url, Workers(url, tmp_path_factory.mktemp("workers")).serving() as workers:
        yield workers


# -- what is prepared, and what must come of it ------------------------------------------------------
def room_on_a_new_interface(system: System) -> None:
    system.add_node(eni={"first-interface-index": 1})
    system.settle_reads()


def attach_refused_once(system: System) -> None:
    room_on_a_new_interface(system)
    system.ec2.add_faults([Fault(action="AttachNetworkInterface", code="InvalidParameterCombination")])


def termination_flag_refused_once(system: System) -> None:
    room_on_a_new_interface(system)
    system.ec2.add_faults([Fault(action="ModifyNetworkInterfaceAttribute", code="InternalError", status=500)])


def create_without_an_answer(system: System) -> None:
    room_on_a_new_interface(system)
    system.ec2.add_faults([Fault(action="CreateNetworkInterface", drop=True, after=True)])


def room_on_the_first_interface(system: System) -> None:
    system.add_node(ipam={"pre-allocate": 4})  # twice that would fit, too
    system.settle_reads()


def assign_without_an_answer(system: System) -> None:
    room_on_the_first_interface(system)
    system.ec2.add_faults([Fault(action="AssignPrivateIpAddresses", drop=True, after=True)])


def prefixes_without_an_answer(system: System) -> None:
    room_on_the_first_interface(system)
    system.ec2.add_faults([Fault(action="AssignPrivateIpAddresses", drop=True, after=True)])


def no_prefix_to_be_had(system: System) -> None:
    """The only subnet has free addresses and no free block."""
    known = {subnet.cidr: subnet.id for subnet in system.built.world.subnets.truth.by_id.values()}
    subnet = known.get("10.0.200.0/24")
    if subnet is None:
        subnet = system.built.world.add_subnet(system.built.vpc_id, "a", "10.0.200.0/24").id
        system.ec2.occupy_addresses(subnet, [f"10.0.200.{16 * block + 8}" for block in range(16)])
    instance = system.launch(subnet=subnet)
    system.add_node(instance=instance, ipam={"pre-allocate": 4}, eni={"subnet-ids": [subnet]})
    system.settle_reads()


def two_interfaces_needed(system: System) -> None:
    system.add_node(ipam={"pre-allocate": 12})
    system.settle_reads()


def a_static_address_wanted(system: System) -> None:
    for _ in range(3):
        system.ec2.allocate_elastic_ip({"pool": "egress"})
    system.add_node(ipam={"pre-allocate": 4, "static-ip-tags": {"pool": "egress"}})
    system.settle_reads()


def static_address_without_an_answer(system: System) -> None:
    a_static_address_wanted(system)
    system.ec2.add_faults([Fault(action="AssociateAddress", drop=True, after=True)])


def an_ipv6_prefix_wanted(system: System, first_interface_index: int = 0) -> None:
    number = len(system.ec2.view().subnets)
    subnet = system.ec2.add_subnet(
        system.built.vpc_id, "a", f"10.0.{100 + number}.0/24", ipv6_cidr=f"2001:db8:0:{number}::/64"
    )
    system.add_node(subnet=subnet.id, eni={"first-interface-index": first_interface_index}, ipam={"pre-allocate": 4})
    AgentOn(system, Agent120DualStack)
    system.settle_reads()


def an_ipv6_prefix_wanted_on_a_new_interface(system: System) -> None:
    an_ipv6_prefix_wanted(system, first_interface_index=1)


def ipv6_prefix_without_an_answer(system: System) -> None:
    an_ipv6_prefix_wanted(system)
    system.ec2.add_faults([Fault(action="AssignIpv6Addresses", drop=True, after=True)])


def a_pool_to_be_shown(system: System) -> None:
    room_on_the_first_interface(system)
    system.services.maintain.run("node")


def a_new_object(system: System) -> None:
    system.add_node()


def a_new_object_taken_in(system: System) -> None:
    system.add_node()
    system.ingest()


def pods_came(system: System) -> None:
    system.add_node()
    system.settle()
    system.use(4)


def addresses_were_taken(system: System) -> None:
    system.add_node()
    system.settle()
    (interface,) = (each for each in system.ec2.view().interfaces if each.instance_id == instance_of(system))
    system.ec2.remove_interface(interface.id)
    system.ec2.add_interface(interface.subnet_id, instance_id=instance_of(system), device_index=0, secondary_count=2)
    system.later(60)
    system.services.work.enqueue_pass(Pass.INVENTORY, ends_wait=True)


def another_machine(system: System) -> None:
    room_on_a_new_interface(system)
    system.settle()
    another_machine_now(system)


def another_machine_now(system: System) -> None:
    replaced = system.launch()
    system.change("node", lambda body: body["spec"].update({"instance-id": replaced.id}))


def another_object(system: System) -> None:
    system.add_node()
    system.settle()
    system.kube.store.delete("node")
    system.add_node()


def interfaces_left_over(system: System) -> None:
    system.add_node()
    system.settle()
    for _ in range(2):
        system.ec2.add_interface(system.built.pod_subnets["a"], tags=ownership(system.cluster))
    system.services.orphans.run()
    system.later(600)
    system.services.work.collect_orphans()


def machine_replaced(system: System) -> None:
    """Another machine under the same object; what was made for the old one and never attached is for the collector."""
    system.ec2.terminate_instance(instance_of(system))
    another_machine_now(system)


def four_in_excess(system: System) -> None:
    """They have been for the whole delay."""
    system.add_node()
    system.settle()
    system.change("node", lambda body: body["spec"]["ipam"].update({"pre-allocate": 4}))
    system.settle()
    system.resync()
    system.later(DELAY_SECONDS)


def marks(system: System) -> dict[str, str]:
    """What the object shows of releases."""
    return system.object()["status"].get("ipam", {}).get("release-ips", {})


def the_agent_agreed(system: System) -> None:
    four_in_excess(system)
    system.resync()
    assert set(marks(system).values()) == {"marked-for-release"}
    agreed = dict.fromkeys(marks(system), "ready-for-release")
    system.change("node", lambda body: body["status"]["ipam"].update({"release-ips": agreed}), status=True)


def the_agent_agreed_and_is_heard(system: System) -> None:
    the_agent_agreed(system)
    system.ingest()


def unassign_without_an_answer(system: System) -> None:
    the_agent_agreed_and_is_heard(system)
    system.ec2.add_faults([Fault(action="UnassignPrivateIpAddresses", drop=True, after=True)])


def a_release_to_be_shown(system: System) -> None:
    the_agent_agreed_and_is_heard(system)
    system.services.maintain.run("node")


class Case(NamedTuple):
    """`interfaces` and `assigns` are what the node has in the end, and the calls that it took.

    `meanwhile` happens between the death and the claim of the next worker.
    """

    flow: str
    prepare: Callable[[System], None]
    interfaces: list[int]
    assigns: int | None = None
    points: int = 1
    prefixes: bool = False
    meanwhile: Callable[[System], None] | None = None

    def __str__(self) -> str:
        parts = [self.flow, self.prepare.__name__, *([self.meanwhile.__name__] if self.meanwhile else [])]
        parts += ["prefixes"] if self.prefixes else []
        return "-".join(parts)


CASES = [
    Case("maintain", room_on_a_new_interface, [0, 8], 0, points=9),
    Case("maintain", attach_refused_once, [0, 8], 0, points=8),
    Case("maintain", termination_flag_refused_once, [0, 8], 0, points=8),
    Case("maintain", create_without_an_answer, [0, 8], 0, points=4),
    Case("maintain", room_on_a_new_interface, [0, 8], points=9, meanwhile=machine_replaced),
    Case("maintain", room_on_the_first_interface, [4], 1, points=4),
    Case("maintain", assign_without_an_answer, [4], 1, points=4),
    Case("maintain", two_interfaces_needed, [9, 3], 1, points=11),
    Case("maintain", room_on_the_first_interface, [16], 1, points=4, prefixes=True),
    Case("maintain", prefixes_without_an_answer, [16], 1, points=4, prefixes=True),
    Case("maintain", no_prefix_to_be_had, [4], 1, points=7, prefixes=True),
    Case("maintain", room_on_a_new_interface, [0, 16], 0, points=9, prefixes=True),
    Case("maintain", create_without_an_answer, [0, 16], 0, points=4, prefixes=True),
    Case("maintain", attach_refused_once, [0, 16], 0, points=8, prefixes=True),
    Case("publish", a_pool_to_be_shown, [16], 1, points=5, prefixes=True),
    Case("maintain", a_static_address_wanted, [4], 1, points=6),
    Case("maintain", static_address_without_an_answer, [4], 1, points=6),
    Case("maintain", an_ipv6_prefix_wanted, [4], 1, points=6),
    Case("maintain", ipv6_prefix_without_an_answer, [4], 1, points=6),
    Case("maintain", an_ipv6_prefix_wanted_on_a_new_interface, [0, 4], 0, points=9),
    Case("publish", a_pool_to_be_shown, [4], 1, points=6),
    Case("maintain", the_agent_agreed_and_is_heard, [4], 1, points=4),
    Case("maintain", unassign_without_an_answer, [4], 1, points=4),
    Case("publish", a_release_to_be_shown, [4], 1, points=5),
    Case("ingest", the_agent_agreed, [4], 1, points=2),
    Case("instances", a_new_object_taken_in, [8], 1, points=6),
    Case("inventory", addresses_were_taken, [8], 2, points=5),
    Case("ingest", a_new_object, [8], 1, points=2),
    Case("ingest", pods_came, [9, 3], 2, points=2),
    Case("ingest", another_machine, [0, 8], 0, points=2),
    Case("ingest", another_object, [8], 2, points=2),
    Case("orphans", interfaces_left_over, [8], 1, points=6),
    Case("tick", a_new_object_taken_in, [8], 1, points=2),
]


def collect(system: System) -> None:
    """Two passes of the collector, a grace apart."""
    for _ in range(2):
        system.services.orphans.run()
        system.later(600)


def instance_of(system: System) -> str:
    return system.object()["spec"]["instance-id"]


def right(system: System, case: Case) -> None:
    attached = [each for each in system.ec2.view().interfaces if each.instance_id == instance_of(system)]
    attached.sort(key=lambda each: each.attachment.device_index)
    held = {each.id: [a for name in (*each.addresses, *each.prefixes) for a in expanded(name)] for each in attached}
    assert [len(addresses) for addresses in held.values()] == case.interfaces
    assert all(each.attachment.delete_on_termination for each in attached)
    assert system.pool() == {address: interface for interface, addresses in held.items() for address in addresses}
    assert set(system.object()["status"]["eni"]["enis"]) == {each.id for each in attached}
    assert system.status().ready
    beside_the_pool(system)
    assert system.clean()
    assert set(marks(system).values()) <= {"released"}
    assert marks(system).keys().isdisjoint(system.pool())
    if case.assigns is not None:
        assert sum(call.effect for call in system.ec2.calls("AssignPrivateIpAddresses")) == case.assigns
    requests = defaultdict(set)
    for call in system.ec2.calls("CreateNetworkInterface"):
        rest = {name: value for name, value in call.parameters.items() if name != "ClientToken"}
        requests[call.parameters["ClientToken"]].add(json.dumps(rest, sort_keys=True))
    assert all(len(different) == 1 for different in requests.values())


def beside_the_pool(system: System) -> None:
    """What is asked for is there once, and shown."""
    spec, status = system.object()["spec"]["ipam"], system.object()["status"]
    attached = [each for each in system.ec2.view().interfaces if each.instance_id == instance_of(system)]
    taken = [association.public_ip for each in attached for association in each.associations]
    assert len(taken) == len(spec.get("static-ip-tags", ()))
    assert len(taken) == sum(call.effect for call in system.ec2.calls("AssociateAddress"))
    assert taken == list(filter(None, [status.get("ipam", {}).get("assigned-static-ip")]))
    prefixes = [prefix for each in attached for prefix in each.ipv6_prefixes]
    assert len(prefixes) == ("pools" in spec)
    assert prefixes == [each for eni in status["eni"]["enis"].values() for each in eni.get("ipv6-prefixes", ())]


def never_a_pool_without_its_interface(system: System, since: int) -> None:
    """Who writes the pool has written the status before."""
    before: dict[str, Any] = {}
    for event in system.kube.store.history.since(since):
        body = json.loads(event.line)["object"]
        pool = body["spec"].get("ipam", {}).get("pool", {})
        if pool != before:
            shown = body.get("status", {}).get("eni", {}).get("enis", {})
            assert {entry["resource"] for entry in pool.values()} <= set(shown)
        before = pool


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_next_worker_finishes(workers: Workers, case: Case) -> None:
    for kill_at in count(1):
        with workers.world(prefixes=case.prefixes) as system:
            since = system.kube.store.version
            case.prepare(system)
            outcome = workers.killed(system, case.flow, kill_at)
            try:
                assert not outcome["failed"], "the worker ended by an error"
                if case.meanwhile:
                    case.meanwhile(system)
                workers.finish(system)
                if case.meanwhile:
                    collect(system)
                right(system, case)
                workers.read_everything(system)
                right(system, case)
                assert system.reserved() == {}
                never_a_pool_without_its_interface(system, since)
            except BaseException as error:
                error.add_note(f"killed at {outcome['points'][-1:]}, after {outcome['points'][:-1]}")
                raise
        if not outcome["killed"]:
            break
    assert len(outcome["points"]) >= case.points, outcome["points"]
