"""A few real instance types with what their network takes, in the figures of EC2's own table.

This is the sandbox's only source of limits. The types are chosen for their shapes: small and large, Xen (no
prefixes), bare metal (no hypervisor named), and several network cards, where the total says more than card 0
takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from eni_tasks.sandbox.ec2.errors import Ec2Error

if TYPE_CHECKING:
    from eni_tasks.sandbox.ec2.records import Instance


class InstanceType(msgspec.Struct, frozen=True):
    """An instance type.

    `cards` are the interfaces that each network card takes. `ipv4_per_interface` counts the slots for IPv4
    addresses, the primary one among them, and for prefixes; EC2's figure for IPv6 is the same for these types.
    """

    name: str
    cards: tuple[int, ...]
    ipv4_per_interface: int
    vcpus: int
    memory_mib: int
    hypervisor: str = "nitro"

    @property
    def bare_metal(self) -> bool:
        """Whether the type has no hypervisor."""
        return self.hypervisor == ""

    @property
    def takes_prefixes(self) -> bool:
        """Whether EC2 assigns prefixes on this type: on Nitro and bare metal only."""
        return self.hypervisor != "xen"

    @property
    def max_interfaces(self) -> int:
        """EC2's MaximumNetworkInterfaces: the sum over all cards."""
        return sum(self.cards)


INSTANCE_TYPES = {
    instance_type.name: instance_type
    for instance_type in (
        InstanceType("t3.micro", (2,), 2, 2, 1024),
        InstanceType("t3.small", (3,), 4, 2, 2048),
        InstanceType("t3.medium", (3,), 6, 2, 4096),
        InstanceType("t3.large", (3,), 12, 2, 8192),
        InstanceType("c5.large", (3,), 10, 2, 4096),
        InstanceType("c5.xlarge", (4,), 15, 4, 8192),
        InstanceType("m4.large", (2,), 10, 2, 8192, "xen"),
        InstanceType("m5.large", (3,), 10, 2, 8192),
        InstanceType("m5.xlarge", (4,), 15, 4, 16384),
        InstanceType("m5.2xlarge", (4,), 15, 8, 32768),
        InstanceType("m5.4xlarge", (8,), 30, 16, 65536),
        InstanceType("m5.metal", (15,), 50, 96, 393216, ""),
        InstanceType("m6g.large", (3,), 10, 2, 8192),
        InstanceType("r5.xlarge", (4,), 15, 4, 32768),
        InstanceType("c6in.32xlarge", (8, 8), 50, 128, 262144),
        InstanceType("p4d.24xlarge", (15, 15, 15, 15), 50, 96, 1179648),
    )
}


def known_types(names: list[str]) -> list[InstanceType]:
    """Look up types by name.

    Args:
        names: the types; none means all.

    Returns:
        The types, in the order of the table.

    Raises:
        Ec2Error: a name is unknown, whatever the others are.
    """
    unknown = [name for name in names if name not in INSTANCE_TYPES]
    if unknown:
        text = f"The following supplied instance types do not exist: [{', '.join(unknown)}]"
        raise Ec2Error("InvalidInstanceType", text)
    return [each for name, each in INSTANCE_TYPES.items() if not names or name in names]


def type_of(instance: Instance) -> InstanceType:
    """Returns the type of an instance."""
    return INSTANCE_TYPES[instance.instance_type]


def card_limit(instance: Instance, card: int) -> int:
    """Returns how many interfaces a card of an instance really takes."""
    if card == 0 and instance.max_interfaces is not None:
        return instance.max_interfaces
    return type_of(instance).cards[card]
