"""The life of instances: launched with a primary interface, stopped, started, terminated.

Nobody does this through the EC2 API here; the sandbox and the tests do. The caller holds the lock.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from eni_tasks.sandbox.ec2.instance_types import known_types
from eni_tasks.sandbox.ec2.interfaces import create_interface, free, place, remove
from eni_tasks.sandbox.ec2.records import Instance, InstanceState
from eni_tasks.sandbox.ec2.world import new_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eni_tasks.sandbox.ec2.world import World


def launch_instance(  # noqa: PLR0913 - what an instance consists of
    world: World,
    instance_type: str,
    subnet_id: str,
    *,
    groups: Sequence[str] = (),
    tags: Mapping[str, str] | None = None,
    max_interfaces: int | None = None,
) -> Instance:
    """Launch an instance with its primary interface at device index 0, which dies with it.

    Args:
        world: where.
        instance_type: one of the table's.
        subnet_id: of the primary interface.
        groups: security groups of the primary interface; none means the VPC's default.
        tags: of the instance.
        max_interfaces: what card 0 really takes, if not what the table says.

    Raises:
        Refused: unknown type, subnet or group, or no room.
    """
    known_types([instance_type])
    primary = create_interface(world, subnet_id=subnet_id, groups=groups)
    serial = world.next_serial()
    instance = Instance(
        id=new_id("i", serial),
        serial=serial,
        tags=dict(tags or {}),
        instance_type=instance_type,
        subnet_id=subnet_id,
        vpc_id=primary.vpc_id,
        availability_zone=primary.availability_zone,
        private_address=primary.primary_address,
        launched_at=world.clock(),
        state="pending",
        max_interfaces=max_interfaces,
    )
    world.keep_instance(instance.id, instance)
    place(world, primary, instance, device_index=0, delete_on_termination=True)
    world.later(world.knobs.start_seconds, partial(_become, world, instance.id, "pending", "running"))
    return world.instances.truth.by_id[instance.id]


def stop_instance(world: World, instance_id: str) -> None:
    """Stop an instance; its interfaces stay."""
    _set_state(world, instance_id, "stopping")
    world.later(world.knobs.stop_seconds, partial(_become, world, instance_id, "stopping", "stopped"))


def start_instance(world: World, instance_id: str) -> None:
    """Start a stopped instance."""
    _set_state(world, instance_id, "pending")
    world.later(world.knobs.start_seconds, partial(_become, world, instance_id, "pending", "running"))


def terminate_instance(world: World, instance_id: str) -> None:
    """Terminate an instance; interfaces go with it or become available, as each was told to."""
    _set_state(world, instance_id, "shutting-down")
    world.later(world.knobs.terminate_seconds, partial(_terminated, world, instance_id))


def change_instance_type(world: World, instance_id: str, instance_type: str) -> None:
    """Give an instance another type, as people do while it is stopped.

    Raises:
        Refused: unknown type.
    """
    known_types([instance_type])
    instance = world.instances.truth.by_id[instance_id]
    world.keep_instance(instance_id, replace(instance, instance_type=instance_type))


def _set_state(world: World, instance_id: str, state: InstanceState) -> None:
    world.keep_instance(instance_id, replace(world.instance(instance_id), state=state))


def _become(world: World, instance_id: str, before: InstanceState, after: InstanceState) -> None:
    instance = world.instances.truth.by_id.get(instance_id)
    if instance is not None and instance.state == before:  # else something else happened meanwhile
        world.keep_instance(instance_id, replace(instance, state=after))


def _terminated(world: World, instance_id: str) -> None:
    instance = world.instances.truth.by_id.get(instance_id)
    if instance is None or instance.state == "terminated":
        return
    for interface in world.attached(instance_id):
        if interface.attachment and interface.attachment.delete_on_termination:
            remove(world, interface)
        elif interface.attachment:
            free(world, interface.attachment.id)
    world.keep_instance(instance_id, replace(instance, state="terminated", terminated_at=world.clock()))
    world.later(world.knobs.terminated_shown_seconds, partial(world.keep_instance, instance_id, None))
