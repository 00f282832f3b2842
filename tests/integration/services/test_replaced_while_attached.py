"""A machine is replaced under the same object while delete-on-termination of its new interface is being set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest

if TYPE_CHECKING:
    from pumped import System


@pytest.mark.parametrize("after", [False, True], ids=["before-setting", "after-setting"])
@pytest.mark.parametrize("goes", [False, True], ids=["it-is-left-over", "it-goes-with-its-machine"])
def test_the_next_machine_is_not_given_the_last_ones_interface(system: System, *, after: bool, goes: bool) -> None:
    old = system.add_node(eni={"first-interface-index": 1})
    system.settle_reads()
    system.dies(system.services.ec2, "set_delete_on_termination", after=after)
    with pytest.raises(pumped.Killed):
        system.settle(within_seconds=5)
    (made,) = [each for each in system.interfaces(old) if each.attachment.device_index == 1]
    if goes:
        system.process().ec2.set_delete_on_termination(made.id, made.attachment.id)
    system.ec2.terminate_instance(old.id)
    new = system.launch()
    system.change("node", lambda body: body["spec"].update({"instance-id": new.id, "ipam": {}}))
    since = system.kube.store.version
    system.later(pumped.LEASE_SECONDS + 1)
    system.settle(system.process(), within_seconds=900)
    theirs = system.interfaces(new)
    assert [len(each.addresses) for each in theirs] == [0, 8]
    assert set(system.pool().values()) == {theirs[1].id}
    assert system.status().ready
    assert not any(
        b'{"resource":"%b"}' % made.id.encode() in event.line for event in system.kube.store.history.since(since)
    )
    assert system.clean()
