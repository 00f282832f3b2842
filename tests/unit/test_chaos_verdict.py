"""The verdict of the chaos finds what it must: each fault below is one that a run may show for a moment only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from chaos.history import faults

from eni_tasks.sandbox.kube.history import Journal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chaos.agents import Position

MACHINES = {"eni-1": "i-1", "eni-2": "i-2"}
NEVER: Position = (10**9, 0)


class Objects:
    """A file of changes, written as the sandbox writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = Journal(path)
        self._version = 10

    def write(  # noqa: PLR0913 - the parts of an object
        self,
        pool: dict[str, str],
        *,
        name: str = "node-1",
        instance: str = "i-1",
        used: tuple[str, ...] = (),
        enis: tuple[str, ...] | None = None,
        kind: str = "MODIFIED",
    ) -> None:
        """One change of one object."""
        self._version += 1
        self.journal.append(self._line(kind, name, instance, pool, used, enis))

    def restore(self, pool: dict[str, str]) -> None:
        """Back to a version before the first one, with one object."""
        self._version = 5
        self.journal.restored(5, [self._line("ADDED", "node-1", "i-1", pool, (), None)])

    def _line(  # noqa: PLR0913 - the parts of an object
        self,
        kind: str,
        name: str,
        instance: str,
        pool: dict[str, str],
        used: tuple[str, ...],
        enis: tuple[str, ...] | None,
    ) -> bytes:
        shown = sorted(set(pool.values())) if enis is None else enis
        obj: dict[str, Any] = {
            "metadata": {"name": name, "uid": f"uid of {name}", "resourceVersion": str(self._version)},
            "spec": {
                "instance-id": instance,
                "ipam": {"pool": {address: {"resource": interface} for address, interface in pool.items()}},
            },
            "status": {
                "eni": {"enis": {eni: {"id": eni, "vpc": {"primary-cidr": "10.0.0.0/16"}} for eni in shown}},
                "ipam": {"used": {address: {} for address in used}},
            },
        }
        return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[Objects]:
    objects = Objects(tmp_path / "objects")
    with objects.journal._file:
        yield objects


def found(objects: Objects, uses: dict[tuple[str, str], list[list[Position]]] | None = None) -> list[str]:
    return list(faults(objects.path, MACHINES, uses or {}))


def test_a_pool_that_grows_and_loses_what_is_free_is_fine(objects: Objects) -> None:
    objects.write({"10.0.0.1": "eni-1"})
    objects.write({"10.0.0.1": "eni-1", "10.0.0.2": "eni-1"}, used=("10.0.0.1",))
    objects.write({"10.0.0.1": "eni-1"}, used=("10.0.0.1",))
    assert found(objects) == []


def test_a_used_address_left_the_pool_for_one_version(objects: Objects) -> None:
    pool = {"10.0.0.1": "eni-1", "10.0.0.2": "eni-1"}
    objects.write(pool, used=("10.0.0.2",))
    objects.write({"10.0.0.1": "eni-1"}, used=("10.0.0.2",))
    objects.write(pool, used=("10.0.0.2",))
    (fault,) = found(objects)
    assert "it lost 10.0.0.2, which pods use" in fault


@pytest.mark.parametrize(
    ("until", "count"),
    [pytest.param((0, 11), 0, id="freed before"), pytest.param((0, 12), 1, id="in use then")],
)
def test_a_used_address_that_was_not_reported_yet(objects: Objects, until: Position, count: int) -> None:
    objects.write({"10.0.0.1": "eni-1"})
    objects.write({})
    assert len(found(objects, {("i-1", "10.0.0.1"): [[(0, 11), until]]})) == count


def test_a_restore_may_lose_what_its_backup_lacks_and_a_write_after_it_may_not(objects: Objects) -> None:
    uses: dict[tuple[str, str], list[list[Position]]] = {("i-1", "10.0.0.2"): [[(0, 11), NEVER]]}
    objects.write({"10.0.0.1": "eni-1", "10.0.0.2": "eni-1"})
    objects.restore({"10.0.0.1": "eni-1"})
    objects.write({"10.0.0.1": "eni-1", "10.0.0.2": "eni-1"})
    assert found(objects, uses) == []
    objects.write({"10.0.0.1": "eni-1"})
    assert len(found(objects, uses)) == 1


def test_a_pool_names_what_the_status_lacks(objects: Objects) -> None:
    objects.write({"10.0.0.1": "eni-1"})
    objects.write({"10.0.0.1": "eni-1"}, enis=())
    (fault,) = found(objects)
    assert "its pool names eni-1, which its status does not show" in fault


def test_a_pool_names_an_interface_of_another_machine(objects: Objects) -> None:
    objects.write({"10.0.0.1": "eni-2"})
    (fault,) = found(objects)
    assert "its pool names eni-2, which its instance never had" in fault


def test_another_machine_begins_with_another_pool(objects: Objects) -> None:
    objects.write({"10.0.0.1": "eni-1"}, used=("10.0.0.1",))
    objects.write({}, instance="i-2", used=("10.0.0.1",))
    assert found(objects) == []


def test_an_address_is_in_the_pools_of_two_objects_of_one_instance(objects: Objects) -> None:
    objects.write({"10.0.0.1": "eni-1"})
    objects.write({"10.0.0.1": "eni-1"}, name="impostor")
    (fault,) = found(objects)
    assert "its pool names 10.0.0.1, as does that of node-1" in fault


def test_a_deleted_object_shares_nothing(objects: Objects) -> None:
    objects.write({"10.0.0.1": "eni-1"})
    objects.write({"10.0.0.1": "eni-1"}, kind="DELETED")
    objects.write({"10.0.0.1": "eni-1"}, name="node-2")
    assert found(objects) == []


def test_the_file_of_changes_keeps_what_came_before_a_restore(objects: Objects) -> None:
    objects.write({"10.0.0.1": "eni-1"})
    objects.write({"10.0.0.1": "eni-1"}, name="node-2")
    objects.restore({})
    journal = Journal(objects.path)
    with journal._file:
        assert journal.load().keys() == {"node-1"}
    assert journal.version == 5
    assert len(objects.path.read_bytes().splitlines()) == 4
