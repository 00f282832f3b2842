"""One connection pool to the API server per process, and a way to send a request through it.

Configuration (KUBECONFIG or the pod's service account, tokens that are re-read, exec plugins, proxies,
TLS) is the kubernetes client's; requests go straight to its pool, since its generated layers parse each
answer into objects that are not needed here.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import kubernetes
import msgspec
import urllib3

from eni_tasks.adapters.kube.errors import refusal, unreachable
from eni_tasks.errors import ClusterUnavailable, InvalidInput

CONNECT_SECONDS = 3.0
_UNAUTHORIZED, _FIRST_REFUSAL = 401, 300


class KubeClient:
    """Sends requests; safe to share between threads, to be made after a fork.

    Args:
        timeout_seconds: longest wait for one answer.
        connections_count: size of the pool; at least the number of threads.
        kubeconfig: path; by default KUBECONFIG, else the pod's service account, else ~/.kube/config.

    Raises:
        InvalidInput: there is no usable configuration.
    """

    def __init__(self, timeout_seconds: float, connections_count: int, kubeconfig: str | None = None) -> None:
        self._timeout_seconds = timeout_seconds
        self._connections_count = connections_count
        self._kubeconfig = kubeconfig
        self._reloading = threading.Lock()
        self._api = self._load()

    def _load(self) -> kubernetes.client.ApiClient:
        path = self._kubeconfig or os.environ.get("KUBECONFIG")
        configuration = kubernetes.client.Configuration()
        configuration.connection_pool_maxsize = self._connections_count
        try:
            if not path and os.environ.get("KUBERNETES_SERVICE_HOST"):
                kubernetes.config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
            else:
                load = kubernetes.config.load_kube_config
                load(config_file=path, client_configuration=configuration)  # type: ignore[no-untyped-call]
        except (kubernetes.config.ConfigException, OSError) as error:
            raise InvalidInput(
                f"The Kubernetes API can't be reached: {str(error).rstrip('.')}. Set KUBECONFIG, or run in a pod."
            ) from error
        return kubernetes.client.ApiClient(configuration)

    def call(  # noqa: PLR0913 - the parts of a request
        self,
        method: str,
        path: str,
        *,
        what: str,
        node: str = "",
        body: Any = None,
        content_type: str = "application/json",
    ) -> bytes:
        """Send a request and read the whole answer.

        Args:
            method: HTTP method.
            path: with query.
            what: what is asked, for error messages.
            node: the node it is about: a 404 then means that it is gone.
            body: sent as JSON, if not None.
            content_type: of the body.

        Returns:
            The body of the answer.

        Raises:
            NodeGone: the node doesn't exist.
            ConflictError: another writer changed the object first.
            HistoryGone: the continue token is too old.
            ClusterUnavailable: no answer, or not now.
            ClusterRefused: missing rights, or an object that breaks the schema.
        """
        data = None if body is None else msgspec.json.encode(body)
        response = self.open(method, path, what=what, node=node, data=data, content_type=content_type)
        try:
            return response.data
        except urllib3.exceptions.HTTPError as error:
            raise unreachable(error, what) from error

    def open(  # noqa: PLR0913 - the parts of a request
        self,
        method: str,
        path: str,
        *,
        what: str,
        node: str = "",
        data: bytes | None = None,
        content_type: str = "application/json",
        read_seconds: float | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """Send a request and leave the body of a good answer unread; for the rest see `call`.

        Args:
            method: HTTP method.
            path: with query.
            what: what is asked, for error messages.
            node: the node it is about.
            data: the body.
            content_type: of the body.
            read_seconds: longest silence, instead of the usual one.
        """
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds or self._timeout_seconds)
        try:
            api = self._api
            response = _send(api, method, path, data=data, content_type=content_type, timeout=timeout)
            if response.status == _UNAUTHORIZED:
                response.drain_conn()
                api = self._reloaded(api)
                response = _send(api, method, path, data=data, content_type=content_type, timeout=timeout)
            if response.status >= _FIRST_REFUSAL:
                retry_after = response.headers.get("Retry-After")
                raise refusal(response.status, response.data, what, node=node, retry_after=retry_after)
        except urllib3.exceptions.HTTPError as error:
            raise unreachable(error, what) from error
        return response

    def _reloaded(self, stale: kubernetes.client.ApiClient) -> kubernetes.client.ApiClient:
        # A rotated token is on disk before the client's own re-reading (once a minute) would see it.
        with self._reloading:
            if self._api is stale:
                try:
                    self._api = self._load()
                except InvalidInput as error:
                    raise ClusterUnavailable(f"The credentials are being replaced: {error}") from error
            return self._api


def _send(  # noqa: PLR0913 - the parts of a request
    api: kubernetes.client.ApiClient,
    method: str,
    path: str,
    *,
    data: bytes | None,
    content_type: str,
    timeout: urllib3.Timeout,
) -> urllib3.BaseHTTPResponse:
    headers = {"Accept": "application/json", "User-Agent": "eni-tasks"}
    if data is not None:
        headers["Content-Type"] = content_type
    for auth in api.configuration.auth_settings().values():
        headers[auth["key"]] = auth["value"]
    url = api.configuration.host + path
    pool: urllib3.PoolManager = api.rest_client.pool_manager
    # Retrying is for the tasks and the watcher to decide: they know what else has happened meanwhile.
    return pool.request(method, url, body=data, headers=headers, timeout=timeout, preload_content=False, retries=False)
