from __future__ import annotations

import pumped
import pytest


@pytest.fixture
def fleet(system: pumped.System) -> pumped.System:
    """A fleet that is at size: its VPC is known."""
    system.add_node()
    system.settle()
    system.fresh()
    return system
