"""Every way in which Redis can fail us has one name, comes in bounded time, and passes."""

from __future__ import annotations

import datetime as dt
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import redis
import redis_servers
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from state_under_test import KIND, NODE, State
from waiting import until
from wire import Wire

from eni_tasks.errors import StateUnavailable
from eni_tasks.model.network import NodeName
from eni_tasks.model.plan import Urgency

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = [(NODE, Urgency.DEFICIT)]


def test_scripts_survive_a_server_that_forgot_them(state: State) -> None:
    state.queue.enqueue(KIND, ITEMS)
    state.client.script_flush()
    assert state.claim()


def test_a_bug_of_ours_is_not_called_an_outage(state: State) -> None:
    state.client.set(state.keys.pending(KIND), "no ZSET")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        state.queue.enqueue(KIND, ITEMS)


def test_a_restarted_server_is_found_again() -> None:
    with redis_servers.running() as url:
        state = State(url)
        state.queue.enqueue(KIND, ITEMS)
    with pytest.raises(StateUnavailable, match="Is it running"):
        state.queue.enqueue(KIND, ITEMS)
    with redis_servers.running(port=int(url.rsplit(":", 1)[1].split("/")[0])):
        assert state.queue.enqueue(KIND, ITEMS) == [NODE]
        assert state.client.get(state.keys.generation) is None
    state.client.close()


@pytest.mark.parametrize(
    "options",
    [("--replicaof", "127.0.0.1", "1"), ("--maxmemory", "1"), ("--min-replicas-to-write", "1"), ("--requirepass", "x")],
    ids=["replica", "out of memory", "no replica to write to", "password"],
)
def test_a_server_that_refuses_all_is_unavailable(options: tuple[str, ...]) -> None:
    with redis_servers.running(options=options) as url:
        state = State(url)
        with pytest.raises(StateUnavailable):
            state.queue.enqueue(KIND, ITEMS)
        with pytest.raises(StateUnavailable):
            state.coordination.begin_generation()
        state.client.close()


def test_a_server_that_never_answers_costs_bounded_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        state = State(f"redis://127.0.0.1:{silent.getsockname()[1]}/0?socket_timeout=0.1")
        begun = time.monotonic()
        with pytest.raises(StateUnavailable):
            state.now()
        assert time.monotonic() - begun < 5
        state.client.close()


def test_more_threads_than_connections_wait_their_turn(redis_url: str) -> None:
    state = State(f"{redis_url}?max_connections=2")
    names = [NodeName(f"n{i}") for i in range(40)]
    threads = [threading.Thread(target=state.claim, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state.summary.read(()).work[KIND].pending_count == 40
    state.client.close()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for localhost, and its key beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "certificate.pem"
    pem.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return pem


@pytest.mark.parametrize(
    ("host", "trusted", "works"),
    [("localhost", True, True), ("localhost", False, False), ("127.0.0.1", True, False)],
    ids=["trusted", "unknown authority", "another name"],
)
def test_tls_verifies_the_server(certificate: Path, host: str, *, trusted: bool, works: bool) -> None:
    if redis_servers.program("redis") is None:
        pytest.skip("redis-server is not installed; Valkey's wheel has no TLS")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        tls_port = probe.getsockname()[1]
    options = ("--tls-port", str(tls_port), "--tls-cert-file", str(certificate), "--tls-auth-clients", "no")
    with redis_servers.running("redis", options=(*options, "--tls-key-file", str(certificate.parent / "key.pem"))):
        state = State(f"rediss://{host}:{tls_port}/0" + (f"?ssl_ca_certs={certificate}" if trusted else ""))
        if works:
            assert state.queue.enqueue(KIND, ITEMS) == [NODE]
        else:
            with pytest.raises(StateUnavailable, match="certificate verify failed"):
                state.queue.enqueue(KIND, ITEMS)
        state.client.close()


@pytest.mark.parametrize("write", ["a script", "a pipeline", "a claim of unconfirmed state"])
def test_c09_a_demoted_primary_is_left(write: str) -> None:
    with redis_servers.running() as old, redis_servers.running() as new, closing(Wire(_port(old))) as name:
        state = State(name.url)
        state.coordination.begin_generation()
        with ThreadPoolExecutor(4) as threads:  # several connections lead to the old one
            list(threads.map(lambda _: state.now(), range(50)))
        with redis.Redis.from_url(old) as demoted, redis.Redis.from_url(new) as promoted:
            promoted.replicaof("127.0.0.1", _port(old))
            until(lambda: promoted.info("replication")["master_link_status"] == "up", "it has all data")
            promoted.replicaof("NO", "ONE")
            demoted.replicaof("127.0.0.1", _port(new))
            name.lead_to(_port(new))
            if write == "a claim of unconfirmed state":
                with pytest.raises(StateUnavailable, match="no watcher has confirmed"):
                    state.queue.claim(KIND, NODE)
            elif write == "a script":
                assert state.queue.enqueue(KIND, ITEMS) == [NODE]
            else:
                state.queue.remove(NODE)
            until(
                lambda: "eni-tasks" not in [each["name"] for each in demoted.client_list()],
                "no connection leads to the old one",
            )
            state.coordination.begin_generation()
            assert state.claim()
        state.client.close()


def _port(url: str) -> int:
    return int(url.rsplit(":", 1)[1].split("/", maxsplit=1)[0])
