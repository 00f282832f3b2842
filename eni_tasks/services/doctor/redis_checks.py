"""The Redis server: whether it can be what this system builds upon."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from eni_tasks.errors import StateUnavailable
from eni_tasks.services import journal
from eni_tasks.services.doctor.findings import Area, Finding
from eni_tasks.state.nodes import Nodes
from eni_tasks.state.server import RedisServer, ServerDescription

LEAST_VERSION = 7  # scripts write after asking for the time
FULL_SHARE = 0.8
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def examine_redis(server: RedisServer, url: str) -> tuple[list[Finding], ServerDescription | None]:
    """Look at the server.

    Args:
        server: the server.
        url: where it is, from the settings.

    Returns:
        The findings, and the server's description of itself (None: it did not answer).
    """
    area = Area("redis")
    _encryption(area, url)
    try:
        described = server.describe()
    except StateUnavailable as error:
        area.trouble(
            "reachable", str(error), "Start it, or correct ENI_TASKS_REDIS_URL (`eni-tasks settings` shows it)."
        )
        return area.findings, None
    area.ok("reachable", "It answers.")
    _version(area, described)
    _mode(area, described)
    _memory(area, described)
    _persistence(area, described)
    return area.findings, described


def examine_journals(nodes: Nodes) -> list[Finding]:
    """Look for journal entries that no worker can continue with.

    Args:
        nodes: the stored nodes.
    """
    area = Area("redis")
    for name, entry in nodes.journals().items():
        if not journal.readable(entry):
            area.trouble(
                f"journal of {name}",
                f"Its entry in Redis can't be decoded, so no worker changes node {name}.",
                f"Check in EC2 whether an interface was left over, then `eni-tasks unlock {name} --delete-journal`.",
            )
    return area.findings


def _encryption(area: Area, url: str) -> None:
    parts = urlsplit(url)
    options = parse_qs(parts.query)
    if parts.scheme == "rediss":
        if options.get("ssl_cert_reqs", ["required"]) != ["required"] or options.get("ssl_check_hostname") == ["false"]:
            area.note(
                "TLS", "The server's certificate or name is not verified.", "Take the ssl_ options out of the URL."
            )
        else:
            area.ok("TLS", "The connection is encrypted and the server's certificate verified.")
    elif parts.hostname in LOOPBACK:
        area.ok("TLS", "None, and none needed: the server is on this machine.")
    else:
        area.note(
            "TLS",
            "Everything, the password too, crosses the network unencrypted.",
            "Use a rediss:// URL, unless the network itself is encrypted.",
        )


def _version(area: Area, described: ServerDescription) -> None:
    major = described.version.partition(".")[0]
    if not major:
        area.unknown("version", "The server does not give it: our user may not call INFO.", "Allow +info to it.")
    elif major.isdecimal() and int(major) >= LEAST_VERSION:
        area.ok("version", f"{described.product} {described.version} is recent enough.")
    else:
        area.trouble(
            "version", f"{described.product} {described.version} is too old.", "Run Redis 7.0 or later, or Valkey."
        )


def _mode(area: Area, described: ServerDescription) -> None:
    if described.mode == "cluster":
        area.trouble("mode", "The server runs in cluster mode, which Celery's transport can't use.", "Turn it off.")
    elif described.role not in ("", "master"):
        area.trouble("mode", f"The server is a {described.role}: it refuses writes.", "Point the URL at the primary.")
    else:
        area.ok("mode", "A primary, not in cluster mode.")


def _memory(area: Area, described: ServerDescription) -> None:
    if not described.eviction:
        area.unknown("eviction", "The server does not give its policy.", "See that maxmemory-policy is noeviction.")
    elif described.eviction != "noeviction":
        area.trouble(
            "eviction",
            f"maxmemory-policy is {described.eviction}: a key evicted may be a claim or a journal.",
            "Set maxmemory-policy to noeviction (CONFIG SET, or the parameter group of a managed server).",
        )
    else:
        area.ok("eviction", "Nothing is evicted.")
    if described.most_bytes and described.used_bytes > FULL_SHARE * described.most_bytes:
        share = f"{100 * described.used_bytes / described.most_bytes:.0f} % of maxmemory is used"
        area.trouble("memory", f"{share}; at 100 % all writes are refused.", "Give the server more memory.")


def _persistence(area: Area, described: ServerDescription) -> None:
    if described.persistence_error:
        area.trouble(
            "persistence",
            f"The last write to disk failed ({described.persistence_error}); the server may refuse writes (MISCONF).",
            "Look at the server's log and at its disk.",
        )
    elif described.persistence:
        area.ok("persistence", f"Kept on disk: {described.persistence}.")
    else:
        area.ok("persistence", "None, and none needed: after a restart everything is read again.")
