"""The knobs of a running server, from another process or a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import urllib3

from eni_tasks.sandbox.kube.knobs import Entry, Fault, Knobs

if TYPE_CHECKING:
    from pathlib import Path


class Record(msgspec.Struct):
    """What was asked since the last reset: counts by verb or "verb/subresource", and the log."""

    counts: dict[str, int]
    log: list[Entry]


class KubeAdmin:
    """Turns the knobs over HTTP.

    Args:
        url: of the server.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = urllib3.PoolManager(retries=False)

    def set(self, **knobs: Any) -> None:
        """Sets fields of `Knobs`; those not named stay."""
        msgspec.convert(knobs, Knobs)
        self._call("POST", "knobs", knobs)

    def fault(self, *faults: Fault) -> None:
        """Scripts faults, behind the present ones."""
        self._call("POST", "faults", list(faults))

    def clear_faults(self) -> None:
        """Forgets all scripted faults."""
        self._call("DELETE", "faults")

    def break_watches(self) -> None:
        """Cuts all present watches off."""
        self._call("POST", "break-watches")

    def silence_watches(self) -> None:
        """Lets all present watches hang half-open; new ones work."""
        self._call("POST", "silence-watches")

    def compact(self) -> None:
        """Forgets all history: older watches and continue tokens get 410."""
        self._call("POST", "compact")

    def record(self) -> Record:
        """Returns what was asked since the last reset."""
        return msgspec.json.decode(self._call("GET", "requests"), type=Record)

    def reset_record(self) -> None:
        """Starts counting anew."""
        self._call("DELETE", "requests")

    def _call(self, method: str, what: str, body: Any = None) -> bytes:
        data = None if body is None else msgspec.json.encode(body)
        response = self._pool.request(method, f"{self._url}/sandbox/{what}", body=data, timeout=10.0)
        if response.status != 200:  # noqa: PLR2004 - HTTP OK
            raise RuntimeError(f"the sandbox's Kubernetes API refused {method} {what}: {response.data.decode()}")
        return response.data


def write_kubeconfig(path: Path, url: str, token: str = "sandbox") -> Path:  # noqa: S107 - any will do
    """Writes a kubeconfig that leads to the server.

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
