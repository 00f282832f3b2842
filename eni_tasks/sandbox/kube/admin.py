"""The control API of the Kubernetes sandbox: what it can do, and its client.

`KubeControl` acts in the server's process, `KubeAdmin` calls it from anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from eni_tasks.sandbox.kube.knobs import Entry, Fault, Knobs
from eni_tasks.sandbox.serving import ControlClient

if TYPE_CHECKING:
    from pathlib import Path

    from eni_tasks.sandbox.kube.api import Api


class Record(msgspec.Struct):
    """The requests since the last reset: counts by verb or "verb/subresource", and the log."""

    counts: dict[str, int]
    log: list[Entry]


class KubeControl:
    """What the control API can do.

    Args:
        api: to control.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

    def set_knobs(self, **changes: Any) -> Knobs:
        """Set fields of `Knobs`; the others stay. Returns all of them.

        Raises:
            msgspec.ValidationError: an unknown field or a wrong type.
        """
        changed = msgspec.convert(msgspec.to_builtins(self._api.knobs) | changes, Knobs)
        for field in Knobs.__struct_fields__:
            setattr(self._api.knobs, field, getattr(changed, field))
        return changed

    def add_faults(self, faults: list[Fault]) -> None:
        """Script faults, behind the present ones.

        Raises:
            msgspec.ValidationError: one is not a fault.
        """
        self._api.faults.add(msgspec.convert(faults, list[Fault]))

    def clear_faults(self) -> None:
        """Forget all scripted faults."""
        self._api.faults.clear()

    def break_watches(self) -> None:
        """Close the connections of all present watches."""
        self._api.watches.break_all()

    def silence_watches(self) -> None:
        """Let all present watches hang half-open; new ones work."""
        self._api.watches.silence_all()

    def compact(self) -> None:
        """Forget all history: older watches and continue tokens get 410."""
        self._api.store.compact()

    def back_up(self) -> None:
        """Keep a copy of all objects and of their version."""
        self._api.store.back_up()

    def restore(self) -> None:
        """Go back to the last backup, and close the connections of all watches, as a restart of etcd does.

        Raises:
            ApiError: 400 when there is no backup.
        """
        self._api.store.restore()
        self._api.watches.break_all()

    def set_pods(self, node: str, addresses: list[str], waiting: int = 0, waiting_on_host_network: int = 0) -> None:
        """Set the pods of a node: one that runs per address, and such that wait for one in phase Pending."""
        self._api.core.set_pods(node, addresses, waiting=waiting, waiting_on_host_network=waiting_on_host_network)

    def set_ready(self, node: str, *, ready: bool) -> None:
        """Set whether a Node is ready, from now on."""
        self._api.core.set_ready(node, ready=ready)

    def record(self) -> Record:
        """Returns the requests since the last reset."""
        return Record(self._api.requests.counts(), self._api.requests.log())

    def reset_record(self) -> None:
        """Start a new record."""
        self._api.requests.reset()


class KubeAdmin(ControlClient):
    """Calls the control API over HTTP; `KubeControl` says what each method does."""

    def set(self, **knobs: Any) -> None:
        """Set fields of `Knobs`; the others stay."""
        self._call("set_knobs", Knobs, **knobs)

    def fault(self, *faults: Fault) -> None:
        """Script faults, behind the present ones."""
        self._call("add_faults", None, faults=faults)

    def clear_faults(self) -> None:
        """Forget all scripted faults."""
        self._call("clear_faults", None)

    def break_watches(self) -> None:
        """Close the connections of all present watches."""
        self._call("break_watches", None)

    def silence_watches(self) -> None:
        """Let all present watches hang half-open; new ones work."""
        self._call("silence_watches", None)

    def compact(self) -> None:
        """Forget all history: older watches and continue tokens get 410."""
        self._call("compact", None)

    def back_up(self) -> None:
        """Keep a copy of all objects and of their version."""
        self._call("back_up", None)

    def restore(self) -> None:
        """Go back to the last backup, as a restart of etcd does."""
        self._call("restore", None)

    def set_pods(self, node: str, addresses: list[str], *, waiting: int = 0, waiting_on_host_network: int = 0) -> None:
        """Set the pods of a node: one that runs per address, and such that wait for one in phase Pending."""
        waits = {"waiting": waiting, "waiting_on_host_network": waiting_on_host_network}
        self._call("set_pods", None, node=node, addresses=addresses, **waits)

    def set_ready(self, node: str, *, ready: bool) -> None:
        """Set whether a Node is ready, from now on."""
        self._call("set_ready", None, node=node, ready=ready)

    def record(self) -> Record:
        """Returns the requests since the last reset."""
        return self._call("record", Record)

    def reset_record(self) -> None:
        """Start a new record."""
        self._call("reset_record", None)


def write_kubeconfig(path: Path, url: str, token: str = "sandbox") -> Path:  # noqa: S107 - any will do
    """Write a kubeconfig that leads to the server.

    Args:
        path: of the file.
        url: of the server.
        token: what to send as bearer token.

    Returns:
        The path.
    """
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sandbox", "cluster": {"server": url}}],
        "users": [{"name": "sandbox", "user": {"token": token}}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox"}}],
        "current-context": "sandbox",
    }
    # JSON is YAML too.
    path.write_bytes(msgspec.json.format(msgspec.json.encode(config), indent=2))
    path.chmod(0o600)
    return path
