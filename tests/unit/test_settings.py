"""Settings: read once, and all problems are reported at once."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from eni_tasks.errors import InvalidInput
from eni_tasks.model.ec2_actions import AWS_RATE_LIMITS
from eni_tasks.settings import FLOWER_SETTINGS, PREFIX, Settings, load

DOCUMENT = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch):
    """Load from an environment with these settings, given without their prefix."""

    def load_with(**settings: str) -> Settings:
        for name, value in settings.items():
            monkeypatch.setenv(PREFIX + name, value)
        return load()

    return load_with


def problems(loaded, **settings: str) -> list[str]:
    with pytest.raises(InvalidInput) as raised:
        loaded(**settings)
    head, *lines = str(raised.value).splitlines()
    assert head == "The settings can't be used:"
    return [line.strip() for line in lines]


# -- reading ---------------------------------------------------------------------------------------


def test_without_any_setting_the_defaults_hold(loaded):
    settings = loaded()
    assert settings.cluster == "default"
    assert settings.pre_allocate == 8
    assert settings.resync_seconds == 60
    assert settings.rate_limits == AWS_RATE_LIMITS


def test_an_empty_variable_is_none(loaded):
    assert loaded(CLUSTER="", ENI_TAGS="", RESYNC_SECONDS="") == Settings()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        pytest.param("CLUSTER", "prod-1.eu", "prod-1.eu", id="a name"),
        pytest.param("PRE_ALLOCATE", "0", 0, id="a count, zero"),
        pytest.param("RESYNC_SECONDS", "2.5", 2.5, id="a part of a second"),
        pytest.param("SUBNET_IDS", " subnet-1, subnet-2 ,", ("subnet-1", "subnet-2"), id="a list with blanks"),
        pytest.param("SUBNET_TAGS", "for=pods", {"for": "pods"}, id="a tag"),
        pytest.param("SECURITY_GROUP_IDS", "sg-1, sg-2", ("sg-1", "sg-2"), id="a list of groups"),
        pytest.param("SECURITY_GROUP_TAGS", "for=pods", {"for": "pods"}, id="a tag of groups"),
        pytest.param("INSTANCE_TAGS", "a=1, b = 2", {"a": "1", "b": "2"}, id="tags with blanks"),
        pytest.param("ENI_TAGS", "query=a=b,empty=", {"query": "a=b", "empty": ""}, id="tags with odd values"),
        pytest.param("LOG_FORMAT", "console", "console", id="a choice"),
    ],
)
def test_values_are_understood(loaded, name, text, value):
    assert getattr(loaded(**{name: text}), name.lower()) == value


@pytest.mark.parametrize(
    "url", ["redis://h:1/2", "rediss://h", "redis://:secret@h:1/0", f"rediss://u:secret@h:1/0?ssl_ca_certs={__file__}"]
)
def test_redis_urls_with_and_without_tls_and_password(loaded, url):
    assert loaded(REDIS_URL=url).redis_url == SecretStr(url)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        pytest.param("rediss://h?ssl_ca_cert=/ca.pem", "no such option: ssl_ca_cert; a rediss", id="misspelt"),
        pytest.param("redis://h?ssl_ca_certs=/ca.pem", "no such option: ssl_ca_certs; a rediss", id="without TLS"),
        pytest.param("rediss://h?ssl_ca_certs=/no/ca.pem", "/no/ca.pem: there is no such file", id="no file"),
        pytest.param("rediss://h?socket_timeout=5", "no such option: socket_timeout", id="of one client only"),
        pytest.param("rediss://h?ssl_cert_reqs=maybe", "ssl_cert_reqs=maybe is none of", id="no such choice"),
    ],
)
def test_an_option_of_the_redis_url_that_both_clients_do_not_know_is_a_mistake(loaded, url, complaint):
    (line,) = problems(loaded, REDIS_URL=url)
    assert complaint in line


def test_a_file_in_the_working_directory_changes_nothing(loaded, monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("ENI_TASKS_CLUSTER=elsewhere\n")
    monkeypatch.chdir(tmp_path)
    assert loaded().cluster == "default"


def test_settings_are_frozen(loaded):
    with pytest.raises(ValidationError, match="frozen"):
        loaded().cluster = "other"


# -- rate limits -----------------------------------------------------------------------------------


def test_a_rate_limit_changes_the_named_action_only(loaded):
    limits = loaded(RATE_LIMITS="AttachNetworkInterface=10:0.5, AssignPrivateIpAddresses=0:0").rate_limits
    assert limits["AttachNetworkInterface"] == (10, 0.5)
    assert limits["AssignPrivateIpAddresses"] == (0, 0)
    assert limits["CreateNetworkInterface"] == AWS_RATE_LIMITS["CreateNetworkInterface"]
    assert limits.keys() == AWS_RATE_LIMITS.keys()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("Attach=1:1", "'Attach' is none of the limited actions", id="unknown action"),
        pytest.param("AttachNetworkInterface=50", "not size:refill, such as 50:5", id="no refill"),
        pytest.param("AttachNetworkInterface=a:b", "not size:refill, such as 50:5", id="no numbers"),
        pytest.param("AttachNetworkInterface=-1:5", "not size:refill, such as 50:5", id="negative"),
        pytest.param("AttachNetworkInterface=nan:5", "not size:refill, such as 50:5", id="not a number"),
        pytest.param("AttachNetworkInterface=5:inf", "not size:refill, such as 50:5", id="without end"),
        pytest.param("AttachNetworkInterface=5:0", "not size:refill, such as 50:5", id="never refilled"),
        pytest.param("AttachNetworkInterface=0.5:5", "not size:refill, such as 50:5", id="never a whole token"),
        pytest.param("AttachNetworkInterface", "'AttachNetworkInterface' is not key=value", id="no value"),
    ],
)
def test_a_wrong_rate_limit_says_what_is_wrong(loaded, text, complaint):
    (line,) = problems(loaded, RATE_LIMITS=text)
    assert line.startswith("ENI_TASKS_RATE_LIMITS: ")
    assert complaint in line


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("CLUSTER", "a b", id="cluster with a blank"),
        pytest.param("CLUSTER", "{x}", id="cluster with braces would break the hash tag"),
        pytest.param("CLUSTER", "x" * 64, id="cluster too long for a tag's sake"),
        pytest.param("REDIS_URL", "http://h", id="no Redis"),
        pytest.param("PRE_ALLOCATE", "-1", id="negative count"),
        pytest.param("PRE_ALLOCATE", "1.5", id="broken count"),
        pytest.param("PRE_ALLOCATE", "many", id="no number"),
        pytest.param("RESYNC_SECONDS", "0", id="no time at all"),
        pytest.param("RESYNC_SECONDS", "nan", id="not a number"),
        pytest.param("SETTLE_SECONDS", "301", id="too long"),
        pytest.param("ENI_TAGS", "owner", id="tag without value"),
        pytest.param("ENI_TAGS", "=me", id="tag without key"),
        pytest.param("LOG_LEVEL", "loud", id="no such level"),
    ],
)
def test_a_mistake_names_its_variable(loaded, name, text):
    (line,) = problems(loaded, **{name: text})
    assert line.startswith(f"{PREFIX}{name}: ")


def test_all_mistakes_are_reported_at_once(loaded):
    lines = problems(loaded, PRE_ALLOCATE="many", REDIS_URL="http://h", ENI_TAGS="owner", RESYNC="5", LOG_LEVEL="loud")
    named = {line.partition(":")[0] for line in lines}
    assert named == {f"{PREFIX}{name}" for name in ("PRE_ALLOCATE", "REDIS_URL", "ENI_TAGS", "RESYNC", "LOG_LEVEL")}


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        pytest.param("REDIS_ULR", "; did you mean ENI_TASKS_REDIS_URL?", id="letters swapped"),
        pytest.param("SUBNET_ID", "; did you mean ENI_TASKS_SUBNET_IDS?", id="letter missing"),
        pytest.param("XYZZY", "", id="nothing like it"),
    ],
)
def test_an_unknown_name_is_a_mistake(loaded, wrong, advice):
    assert problems(loaded, **{wrong: "x"}) == [f"{PREFIX}{wrong}: no such setting{advice}"]


def test_what_flower_alone_reads_is_no_unknown_name(loaded):
    assert loaded(FLOWER_AUTH="me:secret", FLOWER_URL_PREFIX="/flower") == Settings()


@pytest.mark.parametrize(
    "name",
    ["REDIS_SERVICE_HOST", "REDIS_SERVICE_PORT", "REDIS_SERVICE_PORT_HTTP", "REDIS_PORT", "REDIS_PORT_6379_TCP_ADDR"],
)
def test_what_kubernetes_tells_of_a_service_is_no_unknown_name(loaded, name):
    assert loaded(**{name: "tcp://10.0.0.1:6379"}) == Settings()


def test_other_peoples_variables_are_left_alone(monkeypatch):
    monkeypatch.setenv("ENI_TASK_CLUSTER", "x")
    assert load() == Settings()


def test_each_mistake_is_one_plain_line_however_many_there_are(loaded):
    wrong = {
        "CLUSTER": ("a b", "'a b' is not a cluster's name: at most 63 letters, digits, dots, dashes and underscores"),
        "REDIS_URL": ("http://h", "must begin with redis:// or rediss://"),
        "PRE_ALLOCATE": ("1.5", "1.5 is not a whole number"),
        "RESYNC_SECONDS": ("-3", "-3 must be greater than 0"),
        "STUCK_SECONDS": ("ten", "ten is not a number"),
        "LEASE_SECONDS": ("4", "4 must be at least ENI_TASKS_EC2_TIMEOUT_SECONDS + 5, which is 25"),
        "ENI_TAGS": ("a", "'a' is not key=value"),
        "NODE_METRICS": ("maybe", "maybe is neither true nor false"),
        "LOG_LEVEL": ("loud", "loud is none of debug, info, warning or error"),
        "REDISURL": ("x", "no such setting; did you mean ENI_TASKS_REDIS_URL?"),
    }
    said = problems(loaded, **{name: value for name, (value, _) in wrong.items()})
    assert len(said) == len(wrong)
    for name, (_, words) in wrong.items():
        (line,) = [line for line in said if line.startswith(f"{PREFIX}{name}: ")]
        assert line.removeprefix(f"{PREFIX}{name}: ").startswith(words)


def test_a_lease_must_outlive_a_call(loaded):
    assert loaded(LEASE_SECONDS="25", EC2_TIMEOUT_SECONDS="20").lease_seconds == 25
    (line,) = problems(loaded, LEASE_SECONDS="24", EC2_TIMEOUT_SECONDS="20")
    assert line.endswith("LEASE_SECONDS: 24 must be at least ENI_TASKS_EC2_TIMEOUT_SECONDS + 5, which is 25")
    (line,) = problems(loaded, LEASE_SECONDS="", EC2_TIMEOUT_SECONDS="40")
    assert line.endswith("LEASE_SECONDS: 30 must be at least ENI_TASKS_EC2_TIMEOUT_SECONDS + 5, which is 45")


# -- secrets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param("redis://h:6379/0", "redis://h:6379/0", id="nothing to hide"),
        pytest.param("redis://:hidden@h:6379/0", "redis://:****@h:6379/0", id="password alone"),
        pytest.param("rediss://me:hidden@h/1", "rediss://me:****@h/1", id="user stays"),
        pytest.param("redis://me:hid%40den@h/1", "redis://me:****@h/1", id="password with an at sign"),
        pytest.param("redis://hidden@h/1", "redis://****@h/1", id="password for a user"),
    ],
)
def test_the_password_is_masked(loaded, url, shown):
    settings = loaded(REDIS_URL=url)
    assert settings.masked()["ENI_TASKS_REDIS_URL"] == shown
    assert "den" not in repr(settings)


SIGNS = ("/", "#", "?", "@", ":", "%-", "[", "]", " ")


@pytest.mark.parametrize(
    "url",
    [
        *(f"redis://{user}:hid{sign}den@h:6379/0" for user in ("", "me") for sign in SIGNS),
        *(f"redis://hid{sign}den@h:6379/0" for sign in SIGNS if sign != ":"),
        "redis://:hidden@a:6379,b:6379/0",
        "redis://a:6379,b:6379/0",
        "redis://:hidden",
        "redis://:hidden@",
        "redis://:hidden@h:99999/0",
        "redis://:hidden@h:port/0",
        "redis://:hidden@h/database",
        "redis://:hidden@h/0/1",
        "redis://",
    ],
)
def test_c10_a_url_that_clients_would_misread_is_refused_and_not_shown(loaded, url):
    (complaint,) = problems(loaded, REDIS_URL=url)
    assert "percent-encoded" in complaint
    assert "hid" not in complaint
    assert "den" not in complaint


def test_a_wrong_url_is_not_repeated_in_the_complaint(loaded):
    assert "secret" not in "".join(problems(loaded, REDIS_URL="http://me:secret@h"))


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("RESYNC_SECONDS", "90", "90"),
        ("SETTLE_SECONDS", "0.5", "0.5"),
        ("SUBNET_IDS", "subnet-1, subnet-2", "subnet-1,subnet-2"),
        ("ENI_TAGS", "a=b, c=", "a=b,c="),
        ("RATE_LIMITS", ",".join(f"{action}=7:0.5" for action in AWS_RATE_LIMITS), None),
        ("LOG_LEVEL", "debug", "debug"),
    ],
)
def test_what_is_shown_can_be_given(loaded, name, value, shown):
    settings = loaded(**{name: value})
    text = settings.masked()[PREFIX + name]
    assert text == (value if shown is None else shown)
    assert loaded(**{name: text}) == settings


def test_masked_shows_every_setting_by_its_variable():
    assert set(Settings().masked()) == {PREFIX + name.upper() for name in Settings.model_fields}


# -- policy ----------------------------------------------------------------------------------------


def test_the_policy_carries_what_the_planner_needs(loaded):
    groups = {"SECURITY_GROUP_IDS": "sg-1", "SECURITY_GROUP_TAGS": "c=d"}
    policy = loaded(CLUSTER="c", PRE_ALLOCATE="3", SUBNET_IDS="subnet-1", SUBNET_TAGS="a=b", **groups).policy()
    assert (policy.cluster, policy.pre_allocate_default) == ("c", 3)
    assert (policy.subnet_ids_filter, policy.subnet_tags_filter) == (("subnet-1",), {"a": "b"})
    assert (policy.security_group_ids_filter, policy.security_group_tags_filter) == (("sg-1",), {"c": "d"})


def test_ownership_tags_cannot_be_overridden(loaded):
    tags = loaded(CLUSTER="ours", ENI_TAGS="io.cilium/cluster-name=theirs,team=net").policy().interface_tags
    assert tags == {"io.cilium/cluster-name": "ours", "io.cilium/cilium-managed": "true", "team": "net"}


# -- the document ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://flower.example.org/tools/", "https://flower.example.org/tools"),
        ("http://127.0.0.1:5555", "http://127.0.0.1:5555"),
        ("", ""),
    ],
)
def test_an_address_of_the_web_is_taken_as_given(loaded, given, kept):
    assert loaded(FLOWER_URL=given).flower_url == kept


@pytest.mark.parametrize("name", ["FLOWER_URL", "GRAFANA_URL"])
@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("javascript:alert(1)", "http:// or https://"),
        ("//example.org", "http:// or https://"),
        ("https://", "http:// or https://"),
        ("https://example.org/a b", "http:// or https://"),
        ("java\nscript://example.org", "http:// or https://"),
        ("https://ada:secret@example.org", "no user, password"),
        ("https://token@example.org", "no user, password"),
        ("https://example.org?key=secret", "no user, password"),
        ("https://[::1", "Invalid IPv6"),
    ],
)
def test_an_address_that_must_not_be_linked_to_is_refused_and_not_shown(loaded, name, given, complaint):
    (problem,) = problems(loaded, **{name: given})
    assert problem.startswith(f"ENI_TASKS_{name}: ")
    assert complaint in problem
    assert "secret" not in problem
    assert "token" not in problem


def test_the_document_names_no_setting_that_is_gone():
    named = set(re.findall(rf"{PREFIX}[A-Z0-9_]+", DOCUMENT.read_text()))
    assert named == {PREFIX + name for name in {*map(str.upper, Settings.model_fields), *FLOWER_SETTINGS}}
