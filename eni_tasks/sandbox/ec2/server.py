"""EC2's API over HTTP.

`POST /` is the query protocol. `/sandbox/` is the control API (`admin`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.sandbox.ec2.admin import Control
from eni_tasks.sandbox.ec2.api import Ec2Sandbox
from eni_tasks.sandbox.serving import Handler, Listener, Server

if TYPE_CHECKING:
    from eni_tasks.sandbox.ec2.world import World


class Ec2Server(Server):
    """The API on a port, in threads of this process.

    Tests in the same process use `sandbox` and `control` directly.

    Args:
        world: the records; an empty world when not given.
        port: 0 takes a free one.
        address: where it listens; loopback, unless other hosts must reach it.
    """

    def __init__(self, world: World | None = None, port: int = 0, address: str = "127.0.0.1") -> None:
        self.sandbox = Ec2Sandbox(world)
        self.control = Control(self.sandbox)
        listener = _Listener((address, port), _Handler)
        listener.sandbox, listener.control = self.sandbox, self.control
        super().__init__(listener)


class _Listener(Listener):
    sandbox: Ec2Sandbox


class _Handler(Handler):
    server: _Listener

    do_GET = do_POST = Handler.answer  # noqa: N815 - names that the base class looks for

    def reply(self, body: bytes) -> None:
        """See `Handler.reply`."""
        answer = self.server.sandbox.handle(body.decode(), _caller(self.headers.get("Authorization", "")))
        self.send(answer.status, "text/xml;charset=UTF-8", answer.body)


def _caller(authorization: str) -> str:
    _, _, credential = authorization.partition("Credential=")
    return credential.partition("/")[0]
