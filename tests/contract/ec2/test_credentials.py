"""Credentials that expire, are replaced or come late: the process goes on with the new ones by itself."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from contract.ec2_adapters import ONCE

from eni_tasks.adapters.ec2.adapter import BotoEc2
from eni_tasks.errors import Ec2Error, Ec2Reaction
from eni_tasks.model.network import InterfaceId
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from contract.ec2_servers import Sandbox


class Account:
    """An adapter that finds its credentials in files, and the EC2 that sees with which key it comes."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self._folder = sandbox, folder
        self._ec2 = BotoEc2(options=ONCE, observe=lambda *_: None, warn=[].append)
        sandbox.launch()
        self._interface = InterfaceId(sandbox.control.view().interfaces[0].id)

    def has_a_file(self, key: str) -> None:
        """Somebody writes keys that last, as in a mounted secret."""
        lines = ("[default]", f"aws_access_key_id = {key}", "aws_secret_access_key = secret")
        (self._folder / "credentials").write_text("\n".join(lines))

    def has_a_program(self, key: str) -> None:
        """A program gives keys that soon end, as those of roles do."""
        ends_at = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
        answer = {"Version": 1, "AccessKeyId": key, "SecretAccessKey": "s", "SessionToken": "t", "Expiration": ends_at}
        (self._folder / "answer").write_text(json.dumps(answer))
        program = f'{sys.executable} -c "print(open({str(self._folder / "answer")!r}).read())"'
        (self._folder / "config").write_text(f"[default]\ncredential_process = {program}\n")

    def calls(self, kind: str) -> None:
        if kind == "read":
            self._ec2.limits(["m5.large"])
        else:
            self._ec2.assign_addresses(self._interface, 1)

    def is_refused(self, kind: str) -> str:
        """Call, and be refused for the account's sake; returns the code."""
        with pytest.raises(Ec2Error) as caught:
            self.calls(kind)
        assert caught.value.reaction is Ec2Reaction.ACCOUNT_WIDE
        return caught.value.code

    def keys(self) -> list[str]:
        return [call.caller for call in self.sandbox.control.calls()]


@pytest.fixture
def account(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Account:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    aws = {"REGION": "eu-west-1", "ENDPOINT_URL_EC2": sandbox.server.url, "EC2_METADATA_DISABLED": "true"}
    aws |= {"CONFIG_FILE": str(tmp_path / "config"), "SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")}
    for name, value in aws.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    return Account(sandbox, tmp_path)


@pytest.mark.parametrize("kind", ["read", "write"])
def test_p08_keys_that_end_are_asked_for_anew(account: Account, kind: str) -> None:
    account.has_a_program("OLD")
    account.calls(kind)
    account.has_a_program("NEW")
    account.calls(kind)
    assert account.keys() == ["OLD", "NEW"]


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidClientTokenId", "AuthFailure", "UnrecognizedClientException"])
@pytest.mark.parametrize("kind", ["read", "write"])
def test_p08_keys_that_were_replaced_are_read_again_once_they_are_refused(
    account: Account, kind: str, code: str
) -> None:
    account.has_a_file("OLD")
    account.calls(kind)
    account.has_a_file("NEW")
    account.sandbox.control.add_faults([Fault(action="*", code=code)])
    assert account.is_refused(kind) == code
    account.calls(kind)
    assert account.keys() == ["OLD", "OLD", "NEW"]


@pytest.mark.parametrize("kind", ["read", "write"])
def test_p08_keys_that_come_late_are_found(account: Account, kind: str) -> None:
    assert account.is_refused(kind) == "NoCredentialsError"
    account.has_a_file("NEW")
    account.calls(kind)
    assert account.keys() == ["NEW"]


def test_another_refusal_costs_no_new_client(account: Account) -> None:
    account.has_a_file("OLD")
    account.calls("write")
    account.has_a_file("NEW")
    account.sandbox.control.add_faults([Fault(action="*", code="UnauthorizedOperation")])
    assert account.is_refused("write") == "UnauthorizedOperation"
    account.calls("write")
    assert account.keys() == ["OLD", "OLD", "OLD"]
