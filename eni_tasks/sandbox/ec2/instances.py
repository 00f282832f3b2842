"""Instances and what is attached to them: launch, stop, start, terminate; attach, detach.

EC2's API serves only attaching and detaching here; the control API does the rest. The caller holds the
world's lock.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from eni_tasks.sandbox.ec2.errors import Ec2Error, invalid_combination, invalid_value, not_found
from eni_tasks.sandbox.ec2.interfaces import create_interface, prefixes_not_supported, remove_interface
from eni_tasks.sandbox.ec2.records import (
    Attachment,
    Instance,
    InstanceState,
    Interface,
    card_limit,
    known_types,
    type_of,
)
from eni_tasks.sandbox.ec2.world import new_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eni_tasks.sandbox.ec2.world import World


# -- instances ---------------------------------------------------------------------------------------
def launch_instance(  # noqa: PLR0913 - what an instance consists of
    world: World,
    instance_type: str,
    subnet_id: str,
    *,
    groups: Sequence[str] = (),
    tags: Mapping[str, str] | None = None,
    max_interfaces: int | None = None,
) -> Instance:
    """Launch an instance with its primary interface at device index 0, which is deleted on termination.

    Args:
        world: where.
        instance_type: one of the table's.
        subnet_id: of the primary interface.
        groups: security groups of the primary interface; none means the VPC's default.
        tags: of the instance.
        max_interfaces: what card 0 really takes, if not what the table says.

    Raises:
        Ec2Error: unknown type, subnet or group, or no room.
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
    """Terminate an instance; each interface is deleted or becomes available, as its attachment says."""
    _set_state(world, instance_id, "shutting-down")
    world.later(world.knobs.terminate_seconds, partial(_terminated, world, instance_id))


def change_instance_type(
    world: World, instance_id: str, instance_type: str, *, max_interfaces: int | None = None
) -> None:
    """Give an instance another type, as people do while it is stopped.

    Args:
        world: where.
        instance_id: of the instance.
        instance_type: one of the table's.
        max_interfaces: what card 0 really takes from now on, if not what the table says.

    Raises:
        Ec2Error: unknown type.
        ValueError: the type does not take what is attached.
    """
    known_types([instance_type])
    instance = world.instances.truth.by_id[instance_id]
    changed = replace(instance, instance_type=instance_type, max_interfaces=max_interfaces)
    attached = world.attached(instance_id)
    per_card = Counter(each.attachment.network_card for each in attached if each.attachment)
    slots = type_of(changed).ipv4_per_interface
    cards = len(type_of(changed).cards)
    fits = all(card < cards and count <= card_limit(changed, card) for card, count in per_card.items())
    if not fits or any(max(each.ipv4_slots, each.ipv6_slots) > slots for each in attached):
        raise ValueError(f"{instance_type} does not take the interfaces that {instance_id} has; remove some first")
    world.keep_instance(instance_id, changed)


def _set_state(world: World, instance_id: str, state: InstanceState) -> None:
    world.keep_instance(instance_id, replace(world.instance(instance_id), state=state))


def _become(world: World, instance_id: str, before: InstanceState, after: InstanceState) -> None:
    instance = world.instances.truth.by_id.get(instance_id)
    if instance is not None and instance.state == before:  # else another change came first
        world.keep_instance(instance_id, replace(instance, state=after))


def _terminated(world: World, instance_id: str) -> None:
    instance = world.instances.truth.by_id.get(instance_id)
    if instance is None or instance.state == "terminated":
        return
    for interface in world.attached(instance_id):
        if interface.attachment and interface.attachment.delete_on_termination:
            remove_interface(world, interface)
        elif interface.attachment:
            _detached(world, interface.attachment.id)
    world.keep_instance(instance_id, replace(instance, state="terminated"))
    world.later(world.knobs.terminated_shown_seconds, partial(world.keep_instance, instance_id, None))


# -- attachments -------------------------------------------------------------------------------------
def attach_interface(
    world: World, *, interface_id: str, instance_id: str, device_index: int, network_card: int | None = None
) -> Attachment:
    """Attach an interface to a running instance; it may be of another VPC, in the same zone.

    Raises:
        Ec2Error: nothing there, not running, in use, another zone, index taken, or a limit is reached.
    """
    interface = world.interface(interface_id)
    instance = world.instance(instance_id)
    if instance.state != "running":
        raise Ec2Error("IncorrectState", f"Instance '{instance.id}' is not 'running'.")
    if interface.attachment:
        raise Ec2Error("InvalidNetworkInterface.InUse", f"Interface: [{interface.id}] in use.")
    if interface.availability_zone != instance.availability_zone:
        text = "You may not attach a network interface to an instance if they are not in the same availability zone"
        raise invalid_combination(text)
    _check_place(world, interface, instance, device_index, network_card)
    return place(world, interface, instance, device_index, network_card or 0)


def _check_place(
    world: World, interface: Interface, instance: Instance, device_index: int, network_card: int | None
) -> None:
    kind = type_of(instance)
    card = network_card or 0
    if not 0 <= card < len(kind.cards):
        raise invalid_value(f"Network card index {card} is not supported by {kind.name}.")
    places = [each.attachment for each in world.attached(instance.id) if each.attachment]
    # Without a card, EC2 looks at the indexes of all cards (cilium/cilium#42512).
    seen = places if network_card is None else [each for each in places if each.network_card == card]
    if any(each.device_index == device_index for each in seen):
        text = f"Instance '{instance.id}' already has an interface attached at device index '{device_index}'."
        raise invalid_value(text)
    on_card = sum(each.network_card == card for each in places)
    if on_card >= card_limit(instance, card):
        raise Ec2Error("AttachmentLimitExceeded", f"Interface count {on_card + 1} exceeds the limit for {kind.name}")
    if (interface.prefixes or interface.ipv6_prefixes) and not kind.takes_prefixes:
        raise prefixes_not_supported(kind.name)
    slots = max(interface.ipv4_slots, interface.ipv6_slots)
    if slots > kind.ipv4_per_interface:
        text = f"Address count {slots} on interface-{device_index} exceeds the limit for {kind.name}"
        raise Ec2Error("InvalidInterface.IpAddressLimitExceeded", text)


def place(  # noqa: PLR0913 - what an attachment consists of
    world: World,
    interface: Interface,
    instance: Instance,
    device_index: int,
    network_card: int = 0,
    *,
    delete_on_termination: bool = False,
) -> Attachment:
    """Put an interface on an instance without checks, as EC2 itself does at launch."""
    attach_seconds = world.knobs.attach_seconds
    attachment = Attachment(
        id=new_id("eni-attach", world.next_serial()),
        instance_id=instance.id,
        device_index=device_index,
        network_card=network_card,
        status="attaching" if attach_seconds else "attached",
        attached_at=world.clock(),
        delete_on_termination=delete_on_termination,
    )
    world.attachments[attachment.id] = interface.id
    world.keep_interface(interface.id, replace(interface, attachment=attachment))
    if attach_seconds:
        world.later(attach_seconds, partial(_attached, world, attachment.id))
    return attachment


def _attached(world: World, attachment_id: str) -> None:
    interface = world.interfaces.truth.by_id.get(world.attachments.get(attachment_id, ""))
    if interface and interface.attachment and interface.attachment.status == "attaching":
        attachment = replace(interface.attachment, status="attached")
        world.keep_interface(interface.id, replace(interface, attachment=attachment))


def detach_interface(world: World, *, attachment_id: str) -> None:
    """Begin to detach; the place is free and the interface available when it is done.

    Raises:
        Ec2Error: no such attachment, or it is the instance's primary interface.
    """
    interface = world.interfaces.truth.by_id.get(world.attachments.get(attachment_id, ""))
    if interface is None or interface.attachment is None:
        raise not_found("attachment", attachment_id)
    attachment = interface.attachment
    if attachment.device_index == 0 and attachment.network_card == 0:
        text = "The network interface at device index 0 and networkCard index 0 cannot be detached."
        raise Ec2Error("OperationNotPermitted", text)
    world.on_release("DetachNetworkInterface", interface, (*interface.private_addresses, *interface.prefixes))
    world.keep_interface(interface.id, replace(interface, attachment=replace(attachment, status="detaching")))
    world.later(world.knobs.detach_seconds, partial(_detached, world, attachment_id))


def _detached(world: World, attachment_id: str) -> None:
    """Take an interface off its instance; nothing happens if that was done already."""
    interface = world.interfaces.truth.by_id.get(world.attachments.pop(attachment_id, ""))
    if interface is not None:
        world.keep_interface(interface.id, replace(interface, attachment=None))


def set_delete_on_termination(world: World, *, interface_id: str, attachment_id: str, value: bool) -> None:
    """Set whether an interface is deleted with its instance.

    Raises:
        Ec2Error: no such interface, or it is not attached by that attachment.
    """
    interface = world.interface(interface_id)
    if interface.attachment is None or interface.attachment.id != attachment_id:
        raise not_found("attachment", attachment_id)
    attachment = replace(interface.attachment, delete_on_termination=value)
    world.keep_interface(interface.id, replace(interface, attachment=attachment))
