"""What EC2 does with interfaces, and what it refuses: create, attach, modify, detach, delete.

Each function is one call, with the checks in EC2's order. The caller holds the world's lock.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from eni_tasks.sandbox.ec2.instance_types import INSTANCE_TYPES
from eni_tasks.sandbox.ec2.records import Attachment, Interface
from eni_tasks.sandbox.ec2.refusals import Refused, invalid_value, not_found
from eni_tasks.sandbox.ec2.world import OWNER_ID, new_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eni_tasks.sandbox.ec2.records import Instance, Subnet
    from eni_tasks.sandbox.ec2.world import World

GROUPS_PER_INTERFACE = 5


def create_interface(  # noqa: PLR0913 - EC2's own parameters
    world: World,
    *,
    subnet_id: str,
    groups: Sequence[str] = (),
    secondary_count: int = 0,
    description: str = "",
    tags: Mapping[str, str] | None = None,
    client_token: str = "",
) -> Interface:
    """Create an interface, or answer the one that the same token made before.

    Raises:
        Refused: no such subnet or group, no room, quota, or the token came with other parameters.
    """
    signature = (subnet_id, tuple(groups), secondary_count, description, dict(tags or {}))
    if client_token in world.client_tokens:
        before, made = world.client_tokens[client_token]
        if before != signature:
            text = "The client token provided is already used with other parameters."
            raise Refused("IdempotentParameterMismatch", text)
        return world.interfaces.truth.by_id.get(made.id, made)
    subnet = world.subnet(subnet_id)
    if len(world.interfaces.truth.by_id) >= world.knobs.interface_quota:
        raise Refused("NetworkInterfaceLimitExceeded", "The maximum number of network interfaces has been reached.")
    interface = _new_interface(world, subnet, _checked_groups(world, subnet, groups), secondary_count)
    interface = replace(interface, description=description, tags=dict(tags or {}))
    world.keep_interface(interface.id, interface)
    if client_token:
        world.client_tokens[client_token] = (signature, interface)
    return interface


def _checked_groups(world: World, subnet: Subnet, groups: Sequence[str]) -> tuple[str, ...]:
    if len(groups) > GROUPS_PER_INTERFACE:
        text = "The maximum number of security groups per interface has been reached."
        raise Refused("SecurityGroupsPerInterfaceLimitExceeded", text)
    known = {group.id: group for group in world.groups.values() if group.vpc_id == subnet.vpc_id}
    for group in groups:
        if group not in known:
            raise not_found("group", group)
    default = [group.id for group in known.values() if group.name == "default"]
    return tuple(groups or default)


def _new_interface(world: World, subnet: Subnet, groups: tuple[str, ...], secondary_count: int) -> Interface:
    primary, *secondary = world.take_addresses(subnet.id, 1 + secondary_count)
    serial = world.next_serial()
    return Interface(
        id=new_id("eni", serial),
        serial=serial,
        subnet_id=subnet.id,
        vpc_id=subnet.vpc_id,
        availability_zone=subnet.availability_zone,
        primary_address=primary,
        addresses=tuple(secondary),
        mac="02:" + ":".join(f"{byte:02x}" for byte in serial.to_bytes(5, "big")),
        owner_id=OWNER_ID,
        created_at=world.clock(),
        groups=groups,
    )


def attach_interface(
    world: World, *, interface_id: str, instance_id: str, device_index: int, network_card: int | None = None
) -> Attachment:
    """Attach an interface to a running instance.

    Raises:
        Refused: nothing there, not running, in use, another zone, index taken, or a limit is reached.
    """
    interface = world.interface(interface_id)
    instance = world.instance(instance_id)
    if instance.state != "running":
        raise Refused("IncorrectState", f"Instance '{instance.id}' is not 'running'.")
    if interface.attachment:
        raise Refused("InvalidNetworkInterface.InUse", f"Interface: [{interface.id}] in use.")
    if interface.availability_zone != instance.availability_zone:
        text = "You may not attach a network interface to an instance if they are not in the same availability zone"
        raise Refused("InvalidParameterCombination", text)
    _check_place(world, interface, instance, device_index, network_card)
    return place(world, interface, instance, device_index, network_card or 0)


def _check_place(
    world: World, interface: Interface, instance: Instance, device_index: int, network_card: int | None
) -> None:
    instance_type = INSTANCE_TYPES[instance.instance_type]
    card = network_card or 0
    if not 0 <= card < len(instance_type.cards):
        raise invalid_value(f"Network card index {card} is not supported by {instance_type.name}.")
    places = [each.attachment for each in world.attached(instance.id) if each.attachment]
    # Without a card, EC2 looks at the indexes of all cards (cilium/cilium#42512).
    seen = places if network_card is None else [each for each in places if each.network_card == card]
    if any(each.device_index == device_index for each in seen):
        text = f"Instance '{instance.id}' already has an interface attached at device index '{device_index}'."
        raise invalid_value(text)
    on_card = sum(each.network_card == card for each in places)
    if on_card >= max_interfaces(instance, card):
        raise Refused(
            "AttachmentLimitExceeded", f"Interface count {on_card + 1} exceeds the limit for {instance_type.name}"
        )
    count = 1 + len(interface.addresses)
    if count > instance_type.ipv4_per_interface:
        text = f"Address count {count} on interface-{device_index} exceeds the limit for {instance_type.name}"
        raise Refused("InvalidInterface.IpAddressLimitExceeded", text)


def max_interfaces(instance: Instance, card: int) -> int:
    """Returns how many interfaces a card of an instance really takes."""
    if card == 0 and instance.max_interfaces is not None:
        return instance.max_interfaces
    return INSTANCE_TYPES[instance.instance_type].cards[card]


def place(  # noqa: PLR0913 - what an attachment consists of
    world: World,
    interface: Interface,
    instance: Instance,
    device_index: int,
    network_card: int = 0,
    *,
    delete_on_termination: bool = False,
) -> Attachment:
    """Put an interface on an instance without asking; EC2 itself does so at launch."""
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
        Refused: no such attachment, or it is the instance's primary interface.
    """
    interface, attachment = _by_attachment(world, attachment_id)
    if attachment.device_index == 0 and attachment.network_card == 0:
        text = "The network interface at device index 0 and networkCard index 0 cannot be detached."
        raise Refused("OperationNotPermitted", text)
    world.on_release("DetachNetworkInterface", interface, (interface.primary_address, *interface.addresses))
    going = replace(attachment, status="detaching")
    world.keep_interface(interface.id, replace(interface, attachment=going))
    world.later(world.knobs.detach_seconds, partial(free, world, attachment_id))


def _by_attachment(world: World, attachment_id: str) -> tuple[Interface, Attachment]:
    interface = world.interfaces.truth.by_id.get(world.attachments.get(attachment_id, ""))
    if interface is None or interface.attachment is None:
        raise not_found("attachment", attachment_id)
    return interface, interface.attachment


def free(world: World, attachment_id: str) -> None:
    """Take an interface off its instance; nothing happens if that was done already."""
    interface = world.interfaces.truth.by_id.get(world.attachments.pop(attachment_id, ""))
    if interface is not None:
        world.keep_interface(interface.id, replace(interface, attachment=None))


def delete_interface(world: World, *, interface_id: str) -> None:
    """Delete an available interface.

    Raises:
        Refused: no such interface, or it is attached.
    """
    interface = world.interface(interface_id)
    if interface.attachment:
        text = f"Network interface '{interface.id}' is currently in use."
        raise Refused("InvalidNetworkInterface.InUse", text)
    remove(world, interface)


def remove(world: World, interface: Interface) -> None:
    """Delete an interface without asking; EC2 itself does so on termination."""
    if interface.attachment:
        world.attachments.pop(interface.attachment.id)
    world.keep_interface(interface.id, None)
    world.pools[interface.subnet_id].give_back((interface.primary_address, *interface.addresses))


def set_delete_on_termination(world: World, *, interface_id: str, attachment_id: str, value: bool) -> None:
    """Say whether an interface dies with its instance.

    Raises:
        Refused: no such interface, or it is not attached by that attachment.
    """
    interface = world.interface(interface_id)
    if interface.attachment is None or interface.attachment.id != attachment_id:
        raise not_found("attachment", attachment_id)
    attachment = replace(interface.attachment, delete_on_termination=value)
    world.keep_interface(interface.id, replace(interface, attachment=attachment))


def assign_addresses(world: World, *, interface_id: str, count: int) -> tuple[str, ...]:
    """Assign more secondary addresses.

    Returns:
        The new ones.

    Raises:
        Refused: no such interface, more than the instance's type takes, or no room in the subnet.
    """
    interface = world.interface(interface_id)
    instance = world.instances.truth.by_id.get(interface.instance_id)
    if instance is not None:
        limit = INSTANCE_TYPES[instance.instance_type].ipv4_per_interface
        if 1 + len(interface.addresses) + count > limit:
            raise Refused("PrivateIpAddressLimitExceeded", "Number of private addresses will exceed limit.")
    addresses = world.take_addresses(interface.subnet_id, count)
    world.keep_interface(interface.id, replace(interface, addresses=interface.addresses + addresses))
    return addresses


def unassign_addresses(world: World, *, interface_id: str, addresses: Sequence[str]) -> None:
    """Take secondary addresses away, all or none.

    Raises:
        Refused: no such interface, or an address is not one of its secondary addresses.
    """
    interface = world.interface(interface_id)
    if not set(addresses) <= set(interface.addresses):
        raise invalid_value(f"Some of the specified addresses are not assigned to interface {interface.id}")
    world.on_release("UnassignPrivateIpAddresses", interface, addresses)
    left = tuple(address for address in interface.addresses if address not in addresses)
    world.keep_interface(interface.id, replace(interface, addresses=left))
    world.pools[interface.subnet_id].give_back(tuple(addresses))
