"""The CiliumNodes: versions, optimistic locking, the status subresource, pages.

Objects are never changed in place: each write makes a new body and its bytes, once, and pages and watches
share them. One condition guards the store and wakes the watches.
"""

from __future__ import annotations

import base64
import binascii
import threading
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from eni_tasks.sandbox.kube import schema, statuses
from eni_tasks.sandbox.kube.history import Event, History, Journal
from eni_tasks.sandbox.kube.knobs import Knobs
from eni_tasks.sandbox.kube.statuses import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

API_VERSION = f"{statuses.GROUP}/v2"
Body = dict[str, Any]
# The server's own fields; what a client sends in them is ignored.
_SYSTEM_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
_SNAPSHOT_COUNT = 64


class Stored(NamedTuple):
    """One version of one object, parsed and as bytes."""

    version: int
    body: Body
    raw: bytes


class Page(NamedTuple):
    """One page of a list, and how to get the next one."""

    version: int
    items: list[Stored]
    continue_token: str
    remaining_count: int


class NodeStore:
    """All CiliumNodes in memory.

    Args:
        knobs: lasting behaviour.
        journal: the file in which the objects outlive the process, if there is one.
    """

    def __init__(self, knobs: Knobs | None = None, journal: Journal | None = None) -> None:
        self.knobs = knobs or Knobs()
        # Starts above 1 so that a client with a version from nowhere is "too old", as on a real server.
        self.version = 1000
        self._nodes: dict[str, Stored] = {}
        self._journal = journal
        for name, body in journal.load().items() if journal else ():
            self._nodes[name] = Stored(int(body["metadata"]["resourceVersion"]), body, msgspec.json.encode(body))
        self.version = max(self.version, journal.version if journal else 0)
        self.changed = threading.Condition()
        self.history = History(self.version)
        self._schema = schema.structural_schema()
        self._snapshots: dict[int, list[tuple[str, Stored]]] = {}
        self._backup: tuple[int, dict[str, Stored]] | None = None

    def get(self, name: str) -> Stored:
        """Returns the current version of a node; raises ApiError 404."""
        stored = self._nodes.get(name)
        if stored is None:
            raise statuses.not_found(name)
        return stored

    def page(self, limit_count: int, token: str, only_name: str = "") -> Page:
        """Read one page of the list, sorted by name and as of one version.

        Args:
            limit_count: most items in the page; 0 means all.
            token: the previous page's continue token, or "".
            only_name: the one node wanted, or "" for all.

        Returns:
            The page; its version is that of the first page.

        Raises:
            ApiError: 400 for a bad token, 410 for one whose version is forgotten.
        """
        version, start = _read_token(token) if token else (0, "")
        with self.changed:
            if token and version > 0:
                rows = self._snapshots.get(version)
                if rows is None:
                    raise ApiError(410, statuses.STALE_CONTINUE, metadata={"continue": _token(-1, start)})
            else:
                version, rows = self.version, sorted(self._nodes.items())
            rows_left = [row for row in rows if row[0] >= start and only_name in ("", row[0])]
            taken = rows_left[:limit_count] if limit_count else rows_left
            remaining_count = len(rows_left) - len(taken)
            if remaining_count:
                self._remember_snapshot(version, rows)
        next_token = _token(version, taken[-1][0] + "\0") if remaining_count else ""
        return Page(version, [stored for _, stored in taken], next_token, remaining_count)

    def _remember_snapshot(self, version: int, rows: list[tuple[str, Stored]]) -> None:
        self._snapshots.setdefault(version, rows)
        if len(self._snapshots) > _SNAPSHOT_COUNT:
            del self._snapshots[min(self._snapshots)]

    def compact(self) -> None:
        """Forget all history: older watches and continue tokens get 410."""
        with self.changed:
            self.history.forget()
            self._snapshots.clear()

    def back_up(self) -> None:
        """Keep a copy of all objects and of the version, as a backup of etcd does."""
        with self.changed:
            self._backup = (self.version, dict(self._nodes))

    def restore(self) -> None:
        """Go back to the last backup: objects and versions are as they were then, and nothing after it is known.

        Raises:
            ApiError: 400 when there is no backup.
        """
        with self.changed:
            if self._backup is None:
                raise ApiError(400, "there is no backup to restore")
            self.version, nodes = self._backup
            self._nodes = dict(nodes)
            self._snapshots.clear()
            self.history = History(self.version)
            if self._journal:
                self._journal.restored(self.version, (line_of("ADDED", stored) for stored in self._by_version()))

    def _by_version(self) -> list[Stored]:
        return sorted(self._nodes.values(), key=lambda stored: stored.version)

    def create(self, body: Body) -> Stored:
        """Add a node; a status in the body is dropped, as the real server does.

        Raises:
            ApiError: 409 when the name is taken, 422 when the object breaks the schema.
        """
        metadata = body.get("metadata") or {}
        name = metadata.get("name", "")
        if not name:
            cause = "Required value: name or generateName is required"
            raise statuses.invalid("", [{"reason": "FieldValueRequired", "message": cause, "field": "metadata.name"}])
        new = {**body, "metadata": dict(metadata)}
        new.pop("status", None)
        for field in (*_SYSTEM_FIELDS, "resourceVersion"):
            new["metadata"].pop(field, None)
        self._check(name, new)
        new["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": _now(), "generation": 1}
        with self.changed:
            if name in self._nodes:
                raise statuses.already_exists(name)
            return self._commit("ADDED", name, new)

    def replace(self, name: str, body: Body, *, status: bool = False) -> Stored:
        """Put a whole object (or only its status) in place of the current one.

        Raises:
            ApiError: 404, 409 for another version or uid, 422 for a missing version or a broken schema.
        """
        with self.changed:
            before, metadata = self.get(name).body["metadata"], _metadata(name, body)
            if not metadata.get("resourceVersion"):
                cause = "Invalid value: 0x0: must be specified for an update"
                field = "metadata.resourceVersion"
                raise statuses.invalid(name, [{"reason": "FieldValueInvalid", "message": cause, "field": field}])
            if metadata.get("uid", before["uid"]) != before["uid"]:
                raise statuses.uid_mismatch(name, metadata["uid"], before["uid"])
            return self._update(name, body, status=status)

    def patch(self, name: str, change: Callable[[Body], Any], *, status: bool = False) -> Stored:
        """Change a copy of the current object and stores the result (or only its status).

        Args:
            name: the node.
            change: gets a copy it may change, and returns the new object.
            status: whether this is a write of the status subresource.

        Raises:
            ApiError: 404, 409 for another version or uid, 422 for a broken schema, or what `change` raises.
        """
        with self.changed:
            # Parsing the bytes again is the quickest deep copy.
            proposed = change(msgspec.json.decode(self.get(name).raw))
            uid = _metadata(name, proposed).get("uid")
            if uid != self.get(name).body["metadata"]["uid"]:
                cause = f'Invalid value: "{uid}": field is immutable'
                raise statuses.invalid(
                    name, [{"reason": "FieldValueInvalid", "message": cause, "field": "metadata.uid"}]
                )
            return self._update(name, proposed, status=status)

    def _update(self, name: str, proposed: Body, *, status: bool) -> Stored:
        old = self.get(name)
        before, metadata = old.body["metadata"], proposed["metadata"]
        if metadata.get("resourceVersion", before["resourceVersion"]) != before["resourceVersion"]:
            raise statuses.conflict(name)
        new = _with_status(old.body, proposed) if status else _with_old_status(old.body, proposed)
        self._check(name, new)
        if new == old.body:
            return old
        if not status and new.get("spec") != old.body.get("spec"):
            new["metadata"]["generation"] += 1
        if "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers"):
            return self._commit("DELETED", name, new)
        return self._commit("MODIFIED", name, new)

    def delete(self, name: str, uid: str = "", version: str = "") -> Stored | None:
        """Remove a node, or sets its deletionTimestamp while it has finalizers.

        Args:
            name: the node.
            uid: delete only this object, or "".
            version: delete only this version, or "".

        Returns:
            The object if it stays for its finalizers, else None.

        Raises:
            ApiError: 404, or 409 when a precondition doesn't hold.
        """
        with self.changed:
            old = self.get(name)
            metadata = dict(old.body["metadata"])
            if uid and uid != metadata["uid"]:
                raise statuses.precondition_failed(name, "UID", uid, metadata["uid"])
            if version and version != metadata["resourceVersion"]:
                raise statuses.precondition_failed(name, "ResourceVersion", version, metadata["resourceVersion"])
            if not metadata.get("finalizers"):
                self._commit("DELETED", name, {**old.body, "metadata": metadata})
                return None
            if "deletionTimestamp" in metadata:
                return old
            metadata |= {"deletionTimestamp": _now(), "deletionGracePeriodSeconds": 0}
            metadata["generation"] += 1
            return self._commit("MODIFIED", name, {**old.body, "metadata": metadata})

    def _check(self, name: str, body: Body) -> None:
        schema.prune(body, self._schema)
        faults = schema.faults(body, self._schema)
        if faults:
            raise statuses.invalid(name, faults)

    def _commit(self, kind: str, name: str, body: Body) -> Stored:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        stored = Stored(self.version, body, msgspec.json.encode(body))
        if kind == "DELETED":
            del self._nodes[name]
        else:
            self._nodes[name] = stored
        line = line_of(kind, stored)
        if self._journal:
            self._journal.append(line)
        self.history.append(Event(self.version, name, line), self.knobs.history_limit_count)
        self.changed.notify_all()
        return stored


def line_of(kind: str, stored: Stored) -> bytes:
    """Give the line of a watch that tells of a change."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), stored.raw)


def _metadata(name: str, body: Any) -> dict[str, Any]:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(metadata, dict):
        raise ApiError(400, "the write does not leave an object with metadata")
    if metadata.get("name", name) != name:
        text = f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        raise ApiError(400, text)
    return metadata


def _with_status(old: Body, proposed: Body) -> Body:
    # A write of the status subresource changes nothing else, not even annotations.
    new = {**old, "metadata": dict(old["metadata"])}
    new.pop("status", None)
    if "status" in proposed:
        new["status"] = proposed["status"]
    return new


def _with_old_status(old: Body, proposed: Body) -> Body:
    new = {**proposed, "metadata": dict(proposed["metadata"])}
    new.pop("status", None)
    if "status" in old:
        new["status"] = old["status"]
    for field in (*_SYSTEM_FIELDS, "name", "resourceVersion"):
        new["metadata"].pop(field, None)
        if field in old["metadata"]:
            new["metadata"][field] = old["metadata"][field]
    return new


def _token(version: int, start: str) -> str:
    raw = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": version, "start": start})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    try:
        parsed = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return parsed["rv"], parsed["start"]
    except (binascii.Error, msgspec.DecodeError, KeyError, TypeError) as error:
        raise ApiError(400, f"continue key is not valid: {error}") from error


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
