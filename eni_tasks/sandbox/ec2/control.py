"""What people and tests do to this EC2 from behind: turn knobs, script faults, play the cloud, ask the oracle.

`server` offers the public methods over HTTP by their names; `admin` is the client of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from eni_tasks.sandbox.ec2 import instances, interfaces
from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.sandbox.ec2.records import WorldView

if TYPE_CHECKING:
    from eni_tasks.sandbox.ec2.calls import Call
    from eni_tasks.sandbox.ec2.knobs import Knobs
    from eni_tasks.sandbox.ec2.records import Instance, Interface
    from eni_tasks.sandbox.ec2.sandbox import Ec2Sandbox


class Control:
    """The levers of one sandbox; each takes the lock and lets happen what is due.

    Args:
        sandbox: to control.
    """

    def __init__(self, sandbox: Ec2Sandbox) -> None:
        self._sandbox = sandbox
        self._world = sandbox.world

    # -- behaviour -----------------------------------------------------------------------------
    def set_knobs(self, **changes: Any) -> Knobs:
        """Turn some knobs; those not named stay.

        Returns:
            All of them.

        Raises:
            msgspec.ValidationError: an unknown knob or a wrong type.
        """
        with self._world.lock:
            self._world.knobs = self._world.knobs.changed(changes)
            return self._world.knobs

    def add_faults(self, faults: list[Fault]) -> None:
        """Script faults, given as such or as JSON has them, behind the present ones.

        Raises:
            msgspec.ValidationError: one is no fault.
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

    # -- the cloud's own doing -------------------------------------------------------------------
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
        with self._world.lock:
            self._world.settle()
            return instances.launch_instance(
                self._world, instance_type, subnet_id, groups=groups or (), tags=tags, max_interfaces=max_interfaces
            )

    def stop_instance(self, instance_id: str) -> None:
        """Stop an instance; its interfaces stay."""
        with self._world.lock:
            self._world.settle()
            instances.stop_instance(self._world, instance_id)

    def start_instance(self, instance_id: str) -> None:
        """Start a stopped instance."""
        with self._world.lock:
            self._world.settle()
            instances.start_instance(self._world, instance_id)

    def terminate_instance(self, instance_id: str) -> None:
        """Terminate an instance; its interfaces die or become available as each was told."""
        with self._world.lock:
            self._world.settle()
            instances.terminate_instance(self._world, instance_id)

    def change_instance_type(self, instance_id: str, instance_type: str) -> None:
        """Give an instance another type."""
        with self._world.lock:
            self._world.settle()
            instances.change_instance_type(self._world, instance_id, instance_type)

    def add_interface(  # noqa: PLR0913 - a fixture in one call
        self,
        subnet_id: str,
        *,
        secondary_count: int = 0,
        tags: dict[str, str] | None = None,
        groups: list[str] | None = None,
        instance_id: str = "",
        device_index: int = 1,
        owner_id: str = "",
        description: str = "",
        requester_managed: bool = False,
        delete_on_termination: bool = True,
    ) -> Interface:
        """Put an interface there, attached if an instance is named, without a call and without a fault."""
        world = self._world
        with world.lock:
            world.settle()
            interface = interfaces.create_interface(
                world,
                subnet_id=subnet_id,
                groups=groups or (),
                secondary_count=secondary_count,
                description=description,
                tags=tags,
            )
            interface = replace(interface, owner_id=owner_id or interface.owner_id, requester_managed=requester_managed)
            world.keep_interface(interface.id, interface)
            if instance_id:
                instance = world.instances.truth.by_id[instance_id]
                interfaces.place(world, interface, instance, device_index, delete_on_termination=delete_on_termination)
            return world.interfaces.truth.by_id[interface.id]

    def remove_interface(self, interface_id: str) -> None:
        """Take an interface away, attached or not, as a person in the console might."""
        with self._world.lock:
            self._world.settle()
            interfaces.remove(self._world, self._world.interfaces.truth.by_id[interface_id])

    def assign_addresses(self, interface_id: str, count: int) -> tuple[str, ...]:
        """Assign addresses behind everybody's back."""
        with self._world.lock:
            self._world.settle()
            return interfaces.assign_addresses(self._world, interface_id=interface_id, count=count)

    def view(self) -> WorldView:
        """Returns everything there is."""
        world = self._world
        with world.lock:
            world.settle()
            return WorldView(
                vpcs=list(world.vpcs.values()),
                subnets=list(world.subnets.values()),
                security_groups=list(world.groups.values()),
                route_tables=list(world.route_tables.values()),
                instances=list(world.instances.truth.by_id.values()),
                interfaces=list(world.interfaces.truth.by_id.values()),
                free={subnet_id: world.free(subnet_id) for subnet_id in world.pools},
            )

    # -- the record and the oracle -------------------------------------------------------------
    def calls(self, action: str = "") -> list[Call]:
        """Returns the calls since the last reset, of one action or of all."""
        with self._world.lock:
            return self._sandbox.log.calls(action)

    def counts(self) -> dict[str, dict[str, int]]:
        """Returns the number of calls since the last reset, by action and code ("OK" for success)."""
        with self._world.lock:
            return self._sandbox.log.counts()

    def reset_calls(self) -> None:
        """Count anew."""
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
        """Returns what must never be so, in words; empty when all is well."""
        with self._world.lock:
            self._world.settle()
            return self._sandbox.oracle.violations()

    def leftovers(self, tags: dict[str, str] | None = None) -> list[Interface]:
        """Returns the unattached interfaces that carry all `tags`."""
        with self._world.lock:
            self._world.settle()
            return self._sandbox.oracle.leftovers(tags or {})
