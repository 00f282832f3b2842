"""What Celery's transport is told about Redis, so that one URL serves it and our own client alike.

Celery verifies a server only when it is told to, and would take options in the URL for something else.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit


def address(url: str) -> str:
    """The URL without the options that follow it."""
    return urlunsplit(urlsplit(url)._replace(query=""))


def tls(url: str) -> dict[str, Any] | None:
    """The TLS options of a rediss:// URL, in the form of Celery's `broker_use_ssl`; None without TLS.

    The server's certificate and name are verified unless the URL says otherwise.
    """
    parts = urlsplit(url)
    if parts.scheme != "rediss":
        return None
    options: dict[str, Any] = {"ssl_cert_reqs": "required", **dict(parse_qsl(parts.query))}
    if "ssl_check_hostname" in options:
        options["ssl_check_hostname"] = options["ssl_check_hostname"] == "true"
    return options
