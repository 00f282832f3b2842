"""The control API: what tests and people do to this EC2 from outside its API, and the client of that.

They change knobs, script faults, do what the cloud and its users do, and read the log and the oracle. `server`
offers the public methods of `Control` over HTTP by their names; `Ec2Admin` calls them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from eni_tasks.sandbox.ec2 import instances, interfaces
from eni_tasks.sandbox.ec2.api import Call
from eni_tasks.sandbox.ec2.interfaces import Addresses
from eni_tasks.sandbox.ec2.knobs import Fault, Knobs
from eni_tasks.sandbox.ec2.records import BlockState, ElasticIp, Instance, Interface, Subnet, Vpc, WorldView
from eni_tasks.sandbox.serving import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from eni_tasks.sandbox.ec2.api import Ec2Sandbox
    from eni_tasks.sandbox.ec2.records import InterfaceType
    from eni_tasks.sandbox.ec2.world import World


class Control:
    """Controls one sandbox. Each method takes the lock and first lets everything happen that is due.

    Args:
        sandbox: to control.
    """

    def __init__(self, sandbox: Ec2Sandbox) -> None:
        self._sandbox = sandbox
        self._world = sandbox.world

    @contextmanager
    def _settled(self) -> Iterator[World]:
        with self._world.lock:
            self._world.settle()
            yield self._world

    # -- behaviour -----------------------------------------------------------------------------
    def set_knobs(self, **changes: Any) -> Knobs:
        """Change some knobs; the others stay.

        Returns:
            All of them.

        Raises:
            ValueError: an unknown knob or a wrong value.
        """
        with self._world.lock:
            self._world.knobs = self._world.knobs.changed(changes)
            return self._world.knobs

    def add_faults(self, faults: list[Fault]) -> None:
        """Script faults, given as such or as JSON has them, behind the present ones.

        Raises:
            msgspec.ValidationError: one is not a fault.
        """
        checked = msgspec.convert(faults, list[Fault])
        with self._world.lock:
            self._sandbox.faults.add(checked)

    def clear_faults(self) -> None:
        """Forget all scripted faults."""
        with self._world.lock:
            self._sandbox.faults.clear()

    def pending_faults(self) -> list[Fault]:
        """Returns the scripted faults that are not used up."""
        with self._world.lock:
            return self._sandbox.faults.pending()

    # -- the network ---------------------------------------------------------------------------
    def add_vpc(self, cidr: str, *, ipv6_cidr: str = "") -> Vpc:
        """Add a VPC with its default security group."""
        with self._settled() as world:
            return world.add_vpc(cidr, ipv6_cidr=ipv6_cidr)

    def set_cidr_block(self, vpc_id: str, cidr: str, state: str = "associated") -> Vpc:
        """Associate a block with a VPC, or change the state of its association, such as "failed".

        Raises:
            msgspec.ValidationError: not a state of EC2.
        """
        checked: BlockState = msgspec.convert(state, BlockState)
        with self._settled() as world:
            return world.set_cidr_block(vpc_id, cidr, checked)

    def add_subnet(
        self, vpc_id: str, zone: str, cidr: str = "", *, ipv6_cidr: str = "", tags: dict[str, str] | None = None
    ) -> Subnet:
        """Add a subnet to a zone, such as "a": IPv4, dual-stack or (without `cidr`) IPv6-only.

        Raises:
            ValueError: a malformed block, or none.
        """
        if not (cidr or ipv6_cidr):
            raise ValueError("a subnet needs an IPv4 or an IPv6 block")
        with self._settled() as world:
            return world.add_subnet(vpc_id, zone, cidr, tags, ipv6_cidr)

    def occupy_addresses(self, subnet_id: str, names: list[str]) -> None:
        """Let others hold addresses and /28 prefixes of a subnet, which may fragment it.

        Raises:
            Ec2Error: one of them is not free; then none is taken.
        """
        with self._settled() as world:
            world.pools[subnet_id].claim(names)

    def vacate_addresses(self, subnet_id: str, names: list[str]) -> None:
        """Let others give back what they hold."""
        with self._settled() as world:
            world.pools[subnet_id].give_back(names)

    def allocate_elastic_ip(self, tags: dict[str, str] | None = None) -> ElasticIp:
        """Allocate an Elastic IP that is not associated."""
        with self._settled() as world:
            return interfaces.allocate_elastic_ip(world, tags)

    # -- instances and interfaces --------------------------------------------------------------
    def launch_instance(
        self,
        instance_type: str,
        subnet_id: str,
        *,
        groups: list[str] | None = None,
        tags: dict[str, str] | None = None,
        max_interfaces: int | None = None,
    ) -> Instance:
        """Launch an instance with its primary interface; see `instances.launch_instance`."""
        with self._settled() as world:
            return instances.launch_instance(
                world, instance_type, subnet_id, groups=groups or (), tags=tags, max_interfaces=max_interfaces
            )

    def stop_instance(self, instance_id: str) -> None:
        """Stop an instance; its interfaces stay."""
        with self._settled() as world:
            instances.stop_instance(world, instance_id)

    def start_instance(self, instance_id: str) -> None:
        """Start a stopped instance."""
        with self._settled() as world:
            instances.start_instance(world, instance_id)

    def terminate_instance(self, instance_id: str) -> None:
        """Terminate an instance; each interface is deleted or becomes available, as its attachment says."""
        with self._settled() as world:
            instances.terminate_instance(world, instance_id)

    def change_instance_type(self, instance_id: str, instance_type: str, *, max_interfaces: int | None = None) -> None:
        """Give an instance another type; see `instances.change_instance_type`."""
        with self._settled() as world:
            instances.change_instance_type(world, instance_id, instance_type, max_interfaces=max_interfaces)

    def add_interface(  # noqa: PLR0913 - a fixture in one call
        self,
        subnet_id: str,
        *,
        secondary_count: int = 0,
        prefix_count: int = 0,
        ipv6_count: int = 0,
        ipv6_prefix_count: int = 0,
        interface_type: InterfaceType = "interface",
        tags: dict[str, str] | None = None,
        groups: list[str] | None = None,
        instance_id: str = "",
        device_index: int = 1,
        network_card: int = 0,
        owner_id: str = "",
        description: str = "",
        requester_managed: bool = False,
        delete_on_termination: bool = True,
    ) -> Interface:
        """Create an interface, attached if an instance is named, without a call and without a fault.

        It has no IPv4 address in an IPv6-only subnet, and none at all with the type efa-only.
        """
        wanted = Addresses(
            ipv4=secondary_count, prefixes=prefix_count, ipv6=ipv6_count, ipv6_prefixes=ipv6_prefix_count
        )
        with self._settled() as world:
            interface = interfaces.create_interface(
                world,
                subnet_id=subnet_id,
                groups=groups or (),
                wanted=wanted,
                description=description,
                tags=tags,
                interface_type=interface_type,
            )
            interface = replace(interface, owner_id=owner_id or interface.owner_id, requester_managed=requester_managed)
            world.keep_interface(interface.id, interface)
            if instance_id:
                instance = world.instances.truth.by_id[instance_id]
                instances.place(
                    world,
                    interface,
                    instance,
                    device_index,
                    network_card,
                    delete_on_termination=delete_on_termination,
                )
            return world.interfaces.truth.by_id[interface.id]

    def remove_interface(self, interface_id: str) -> None:
        """Remove an interface, attached or not."""
        with self._settled() as world:
            interfaces.remove_interface(world, world.interfaces.truth.by_id[interface_id])

    def assign_addresses(self, interface_id: str, count: int) -> tuple[str, ...]:
        """Assign addresses as another client would, without an entry in the log."""
        with self._settled() as world:
            return interfaces.assign_addresses(world, interface_id=interface_id, wanted=Addresses(ipv4=count)).ipv4

    def view(self) -> WorldView:
        """Returns all records as they truly are."""
        with self._settled() as world:
            return WorldView(
                vpcs=list(world.vpcs.truth.by_id.values()),
                subnets=list(world.subnets.truth.by_id.values()),
                security_groups=list(world.groups.truth.by_id.values()),
                route_tables=list(world.route_tables.truth.by_id.values()),
                instances=list(world.instances.truth.by_id.values()),
                interfaces=list(world.interfaces.truth.by_id.values()),
                elastic_ips=list(world.elastic_ips.truth.by_id.values()),
                free={subnet_id: world.free(subnet_id) for subnet_id in world.pools},
            )

    # -- the log and the oracle ----------------------------------------------------------------
    def calls(self, action: str = "") -> list[Call]:
        """Returns the calls since the last reset, of one action or of all."""
        with self._world.lock:
            return self._sandbox.log.calls(action)

    def counts(self) -> dict[str, dict[str, int]]:
        """Returns the number of calls since the last reset, by action and code ("OK" for success)."""
        with self._world.lock:
            return self._sandbox.log.counts()

    def reset_calls(self) -> None:
        """Start a new log of calls."""
        with self._world.lock:
            self._sandbox.log.reset()

    def use_addresses(self, addresses: list[str]) -> None:
        """Say that pods use these addresses from now on."""
        with self._world.lock:
            self._sandbox.oracle.used.update(addresses)

    def free_addresses(self, addresses: list[str]) -> None:
        """Say that no pod uses these addresses any more."""
        with self._world.lock:
            self._sandbox.oracle.used.difference_update(addresses)

    def violations(self) -> list[str]:
        """Returns what must never be the case, in sentences; empty when all is well."""
        with self._settled():
            return self._sandbox.oracle.violations()

    def leftovers(self, tags: dict[str, str] | None = None) -> list[Interface]:
        """Returns the unattached interfaces that carry all `tags`."""
        with self._settled():
            return self._sandbox.oracle.leftovers(tags or {})


class Ec2Admin(ControlClient):
    """Calls the control API over HTTP; `Control` says what each method does, and what its options are."""

    def set_knobs(self, **changes: Any) -> Knobs:
        """Change some knobs; the others stay."""
        return self._call("set_knobs", Knobs, **changes)

    def add_faults(self, *faults: Fault) -> None:
        """Script faults, behind the present ones."""
        self._call("add_faults", None, faults=faults)

    def clear_faults(self) -> None:
        """Forget all scripted faults."""
        self._call("clear_faults", None)

    def add_vpc(self, cidr: str, **options: Any) -> Vpc:
        """Add a VPC with its default security group; options as in `Control`."""
        return self._call("add_vpc", Vpc, cidr=cidr, **options)

    def set_cidr_block(self, vpc_id: str, cidr: str, state: str = "associated") -> Vpc:
        """Associate a block with a VPC, or change the state of its association."""
        return self._call("set_cidr_block", Vpc, vpc_id=vpc_id, cidr=cidr, state=state)

    def add_subnet(self, vpc_id: str, zone: str, cidr: str = "", **options: Any) -> Subnet:
        """Add a subnet to a zone; options as in `Control`."""
        return self._call("add_subnet", Subnet, vpc_id=vpc_id, zone=zone, cidr=cidr, **options)

    def occupy_addresses(self, subnet_id: str, names: Sequence[str]) -> None:
        """Let others hold addresses and /28 prefixes of a subnet."""
        self._call("occupy_addresses", None, subnet_id=subnet_id, names=names)

    def vacate_addresses(self, subnet_id: str, names: Sequence[str]) -> None:
        """Let others give back what they hold."""
        self._call("vacate_addresses", None, subnet_id=subnet_id, names=names)

    def allocate_elastic_ip(self, **tags: str) -> ElasticIp:
        """Allocate an Elastic IP with tags."""
        return self._call("allocate_elastic_ip", ElasticIp, tags=tags)

    def launch_instance(self, instance_type: str, subnet_id: str, **options: Any) -> Instance:
        """Launch an instance; options as in `Control`."""
        return self._call("launch_instance", Instance, instance_type=instance_type, subnet_id=subnet_id, **options)

    def stop_instance(self, instance_id: str) -> None:
        """Stop an instance."""
        self._call("stop_instance", None, instance_id=instance_id)

    def start_instance(self, instance_id: str) -> None:
        """Start a stopped instance."""
        self._call("start_instance", None, instance_id=instance_id)

    def terminate_instance(self, instance_id: str) -> None:
        """Terminate an instance."""
        self._call("terminate_instance", None, instance_id=instance_id)

    def change_instance_type(self, instance_id: str, instance_type: str, **options: Any) -> None:
        """Give an instance another type; options as in `Control`."""
        self._call("change_instance_type", None, instance_id=instance_id, instance_type=instance_type, **options)

    def add_interface(self, subnet_id: str, **options: Any) -> Interface:
        """Create an interface, attached if `instance_id` is given; options as in `Control`."""
        return self._call("add_interface", Interface, subnet_id=subnet_id, **options)

    def remove_interface(self, interface_id: str) -> None:
        """Remove an interface, attached or not."""
        self._call("remove_interface", None, interface_id=interface_id)

    def assign_addresses(self, interface_id: str, count: int) -> tuple[str, ...]:
        """Assign addresses as another client would, without an entry in the log."""
        return self._call("assign_addresses", tuple[str, ...], interface_id=interface_id, count=count)

    def view(self) -> WorldView:
        """Returns all records as they truly are."""
        return self._call("view", WorldView)

    def calls(self, action: str = "") -> list[Call]:
        """Returns the calls since the last reset, of one action or of all."""
        return self._call("calls", list[Call], action=action)

    def counts(self) -> dict[str, dict[str, int]]:
        """Returns the number of calls since the last reset, by action and code."""
        return self._call("counts", dict[str, dict[str, int]])

    def reset_calls(self) -> None:
        """Start a new log of calls."""
        self._call("reset_calls", None)

    def use_addresses(self, addresses: Sequence[str]) -> None:
        """Say that pods use these addresses from now on."""
        self._call("use_addresses", None, addresses=addresses)

    def free_addresses(self, addresses: Sequence[str]) -> None:
        """Say that no pod uses these addresses any more."""
        self._call("free_addresses", None, addresses=addresses)

    def violations(self) -> list[str]:
        """Returns what must never be the case, in sentences."""
        return self._call("violations", list[str])

    def leftovers(self, **tags: str) -> list[Interface]:
        """Returns the unattached interfaces that carry all `tags`."""
        return self._call("leftovers", list[Interface], tags=tags)
