"""The client of the control API of a running EC2 sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eni_tasks.sandbox.ec2.api import Call
from eni_tasks.sandbox.ec2.knobs import Knobs
from eni_tasks.sandbox.ec2.records import ElasticIp, Instance, Interface, Subnet, Vpc, WorldView
from eni_tasks.sandbox.serving import ControlClient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eni_tasks.sandbox.ec2.knobs import Fault


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
