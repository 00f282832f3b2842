"""What "matches these tags" means, in one place: every required tag is there with that very value.

Also which tags make an interface ours. An empty value has to be present and empty; it does not stand for "any".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def ownership(cluster: str) -> dict[str, str]:
    """Give the tags that say an interface was made for this cluster; Cilium's operator uses the same."""
    return {"io.cilium/cilium-managed": "true", "io.cilium/cluster-name": cluster}


def matches(required: Mapping[str, str], tags: Mapping[str, str]) -> bool:
    """Tell whether all required tags are among `tags`; an empty requirement always matches."""
    return required.items() <= tags.items()
