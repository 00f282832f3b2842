"""Frozen settings, read once at process start from ENI_TASKS_* variables; mistakes in all of them are reported at once.

AWS and Kubernetes keep their own usual variables (AWS_REGION, AWS_ENDPOINT_URL, the credentials
chain, KUBECONFIG): their clients read those themselves.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from eni_tasks.errors import InvalidInput
from eni_tasks.model.ec2_actions import AWS_RATE_LIMITS
from eni_tasks.model.network import ownership
from eni_tasks.model.node import Policy
from eni_tasks.setting_texts import as_text, bucket, masked_url, pairs, problem

if TYPE_CHECKING:
    from collections.abc import Mapping


PREFIX = "ENI_TASKS_"

# Read by the command line itself, since they concern one process only.
FLOWER_SETTINGS = {"FLOWER_AUTH", "FLOWER_URL_PREFIX"}

# Options that may follow the URL of Redis, with the values they take (None: a path). Our client and Celery's
# know others, but not the same.
REDIS_OPTIONS: dict[str, tuple[str, ...] | None] = {
    "ssl_ca_certs": None,
    "ssl_ca_path": None,
    "ssl_certfile": None,
    "ssl_keyfile": None,
    "ssl_cert_reqs": ("required", "optional", "none"),
    "ssl_check_hostname": ("true", "false"),
}

# Stricter than either client: a password that is not encoded would be taken for a host, a path or an option, and
# shown as such.
_REDIS_URL = re.compile(
    r"rediss?://"
    r"(([^\s%:/?#@\[\]]|%[0-9A-Fa-f]{2})*(:([^\s%:/?#@\[\]]|%[0-9A-Fa-f]{2})*)?@)?"
    r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])"
    r"(:(6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3}))?"
    r"(/\d*)?"
    r"(\?[^#@\s]*)?"
)
_REDIS_URL_FORM = (
    "must be redis://[user:password@]host[:port][/database] with one host; in user and password "
    "each of / # ? @ : % [ ] and space is written percent-encoded: %2F %23 %3F %40 %3A %25 %5B %5D %20"
)

_CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")

# What Kubernetes puts into every pod beside a Service of a name like eni-tasks-redis.
_OF_A_SERVICE = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP)(_\w+)?)?)$")

Tags = Annotated[dict[str, str], NoDecode]
Names = Annotated[tuple[str, ...], NoDecode]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Settings(BaseSettings):
    """Everything that the person who runs the system decides.

    Lists are written `a,b`, tags `key=value,key2=value2`, rate limits `Action=size:refill,…`.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, env_ignore_empty=True, extra="forbid")

    cluster: str = Field(
        default="default",
        pattern=f"^{_CLUSTER.pattern}$",
        description="Name of the cluster: in every Redis key and in the ownership tag of every interface; "
        "under `default` nothing that was left behind is deleted",
    )
    redis_url: SecretStr = Field(
        default=SecretStr("redis://127.0.0.1:6379/0"),
        description="redis:// or rediss:// (TLS, verified) URL, with user, password and database if needed; "
        "?ssl_ca_certs=/path names a CA of your own",
    )
    pre_allocate: int = Field(
        default=8, ge=0, le=1000, description="Free addresses wanted where a node gives no number"
    )
    resync_seconds: Seconds = Field(default=60, description="How often everything is read again from EC2")
    relist_seconds: Seconds = Field(default=300, description="How often all CiliumNodes are listed again")
    ec2_timeout_seconds: Seconds = Field(default=20, description="Longest wait for one answer of EC2")
    lease_seconds: Seconds = Field(default=30, description="How long a silent worker keeps its claim on a node")
    overdue_seconds: Seconds = Field(
        default=20, description="Work that no worker takes within this time is enqueued again"
    )
    settle_seconds: Annotated[float, Field(ge=0, le=300)] = Field(
        default=5, description="EC2's reads may lag this long behind its answers to mutations"
    )
    facts_max_age_seconds: Seconds = Field(
        default=300,
        description="Nothing is changed in EC2 on facts that were last read longer ago than this, or than three times "
        "RESYNC_SECONDS if that is longer",
    )
    stuck_seconds: Seconds = Field(
        default=600,
        description="The system falls behind (log, metric `falls_behind`) once a node has lacked addresses, or a read "
        "has been overdue, for this long",
    )
    kube_timeout_seconds: Seconds = Field(default=10, description="Longest wait for one answer of the API server")
    watch_timeout_seconds: Seconds = Field(
        default=90, description="A watch that is silent for this long (bookmarks count) is opened again"
    )
    rate_limits: Annotated[dict[str, tuple[float, float]], NoDecode] = Field(
        default=AWS_RATE_LIMITS,
        description="Rate limit per EC2 action: the size of its token bucket and the tokens added per second, "
        "shared by all workers; an action that isn't named keeps AWS's documented limit; size 0 means no limit",
    )
    release_excess: bool = Field(
        default=False,
        description="Whether addresses in excess of a node's watermarks are given back, if its agent agrees "
        "(Cilium 1.12 and later)",
    )
    release_delay_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        default=180, description="An address must have been in excess for this long before the agent is asked for it"
    )
    release_16: bool = Field(
        default=False,
        description="With RELEASE_EXCESS: also from nodes with agents of Cilium 1.6, which can't be asked. An address "
        "leaves the pool, and is given back if the agent does not report it as used within RELEASE_DELAY_SECONDS",
    )
    surge: bool = Field(
        default=True,
        description="Whether a node in deficit gets an address for each of its waiting pods at once; takes the right "
        "to list and watch pods",
    )
    static_addresses: bool = Field(
        default=False,
        description="Whether nodes with `static-ip-tags` get an Elastic IP; takes the EC2 rights DescribeAddresses and "
        "AssociateAddress",
    )
    prefix_delegation: bool = Field(
        default=False,
        description="Whether nodes of Nitro and bare-metal types get /28 prefixes instead of single addresses, unless "
        "their object says `disable-prefix-delegation`",
    )
    ipv6: bool = Field(
        default=False,
        description="Whether nodes whose agent (Cilium 1.20) asks for IPv6 addresses get a /80; takes the EC2 right "
        "AssignIpv6Addresses",
    )
    eni_tags: Tags = Field(default={}, description="Tags for new interfaces, besides the ownership tags")
    orphan_interval_seconds: Seconds = Field(
        default=300, description="How often interfaces of this cluster that were left behind are looked for"
    )
    orphan_grace_seconds: Annotated[float, Field(gt=0, le=3_600)] = Field(
        default=300, description="An interface must have been seen unattached for this long before it is deleted"
    )
    subnet_ids: Names = Field(default=(), description="Only these subnets may get new interfaces or addresses")
    subnet_tags: Tags = Field(
        default={}, description="Only subnets with all these tags may get new interfaces or addresses"
    )
    security_group_ids: Names = Field(
        default=(),
        description="A CiliumNode may select only these security groups for its new interfaces; without a selection "
        "they get those of the instance's first interface, whichever these are",
    )
    security_group_tags: Tags = Field(
        default={},
        description="A CiliumNode may select only security groups with all these tags for its new interfaces",
    )
    instance_tags: Tags = Field(default={}, description="Only instances with all these tags are served")
    kube_events: Literal["off", "ciliumnodes", "nodes"] = Field(
        default="off",
        description="Whether Kubernetes Events tell what stands in a node's way, and which interfaces it got: about "
        "its CiliumNode, or about its Node as well; the chart's default is `ciliumnodes`",
    )
    node_metrics: bool = Field(
        default=True, description="Whether the exporter shows series per node besides the totals"
    )
    page_address: str = Field(
        default="127.0.0.1",
        description="Where the exporter serves the status page, which asks for no password: loopback, or 0.0.0.0 (or "
        "::) for other machines",
    )
    page_port: int = Field(
        default=9465, ge=0, le=65_535, description="Port of the status page; 0 takes a free one, which the log shows"
    )
    flower_url: str = Field(
        default="",
        description="Address of Flower as people reach it, such as https://flower.example.org: the status page links "
        "to its tasks",
    )
    grafana_url: str = Field(
        default="",
        description="Address of Grafana as people reach it: the status page links to the chart's dashboard",
    )
    probe_dir: str = Field(
        default="",
        description="Folder in which the process keeps the files `alive` (its age is how long it has been "
        "stuck) and `ready`, for probes; one of its own for each process",
    )
    pod_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{0,253}$")] = Field(
        default="",
        description="Name of the pod, for the names of Celery's workers; by default the host's name, which all pods on "
        "a node's network share",
    )
    log_format: Literal["json", "console"] = Field(default="json", description="How log lines are written")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe level written"
    )

    @field_validator("redis_url")
    @classmethod
    def _redis_scheme(cls, value: SecretStr) -> SecretStr:
        url = value.get_secret_value()
        if not url.startswith(("redis://", "rediss://")):
            raise ValueError("must begin with redis:// or rediss://")
        if not _REDIS_URL.fullmatch(url):
            raise ValueError(_REDIS_URL_FORM)
        parts = urlsplit(url)
        for name, text in parse_qsl(parts.query, keep_blank_values=True):
            if parts.scheme != "rediss" or name not in REDIS_OPTIONS:
                raise ValueError(f"no such option: {name}; a rediss:// URL takes {', '.join(REDIS_OPTIONS)}")
            choices = REDIS_OPTIONS[name]
            if choices and text not in choices:
                raise ValueError(f"{name}={text} is none of {', '.join(choices)}")
            if choices is None and not Path(text).exists():
                raise ValueError(f"{name}={text}: there is no such file")
        return value

    @field_validator("flower_url", "grafana_url")
    @classmethod
    def _link(cls, value: str) -> str:
        if not value:
            return value
        # Printable ASCII only: a browser drops some of the rest, and would go elsewhere.
        parts = urlsplit(value) if re.fullmatch(r"[!-~]+", value) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must begin with http:// or https:// and name a host")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("must have no user, password, query or fragment: everyone who opens the page sees it")
        return value.rstrip("/")

    @field_validator("subnet_ids", "security_group_ids", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("eni_tags", "subnet_tags", "security_group_tags", "instance_tags", mode="before")
    @classmethod
    def _tags(cls, value: object) -> object:
        return dict(pairs(value)) if isinstance(value, str) else value

    @field_validator("rate_limits", mode="before")
    @classmethod
    def _rate_limits(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        given = dict(AWS_RATE_LIMITS)
        for action, text in pairs(value):
            if action not in AWS_RATE_LIMITS:
                raise ValueError(f"{action!r} is none of the limited actions: {', '.join(AWS_RATE_LIMITS)}")
            given[action] = bucket(action, text)
        return given

    @field_validator("cluster", mode="before")
    @classmethod
    def _cluster_name(cls, value: object) -> object:
        if isinstance(value, str) and not _CLUSTER.fullmatch(value):
            raise ValueError(
                f"{value!r} is not a cluster's name: at most 63 letters, digits, dots, dashes and underscores, "
                "a letter or digit first"
            )
        return value

    @field_validator("lease_seconds")
    @classmethod
    def _lease_outlives_a_call(cls, value: float, info: ValidationInfo) -> float:
        # A worker that takes over after a crash must find no call of the dead worker still in progress.
        least = info.data.get("ec2_timeout_seconds", 0) + 5
        if value < least:
            raise ValueError(f"{value:g} must be at least {PREFIX}EC2_TIMEOUT_SECONDS + 5, which is {least:g}")
        return value

    @field_validator("release_16")
    @classmethod
    def _release_16_is_a_release(cls, value: bool, info: ValidationInfo) -> bool:  # noqa: FBT001 - pydantic's form
        if value and not info.data.get("release_excess"):
            raise ValueError(f"true needs {PREFIX}RELEASE_EXCESS=true")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment and nothing else: no file can change a process unseen."""
        del settings_cls, dotenv_settings, file_secret_settings
        return init_settings, env_settings

    def masked(self) -> dict[str, str]:
        """All settings by the name of their variable, as one would write them there, the URL's password masked."""
        return {
            PREFIX + name.upper(): masked_url(as_text(value)) if name == "redis_url" else as_text(value)
            for name, value in self
        }

    def policy(self) -> Policy:
        """The part that the planner sees, ownership tags included (they distinguish our interfaces from others')."""
        return Policy(
            cluster=self.cluster,
            pre_allocate_default=self.pre_allocate,
            facts_max_age_seconds=max(self.facts_max_age_seconds, 3 * self.resync_seconds),
            release_excess=self.release_excess,
            release_16=self.release_16,
            release_delay_seconds=self.release_delay_seconds,
            ipv6=self.ipv6,
            prefix_delegation=self.prefix_delegation,
            static_addresses=self.static_addresses,
            interface_tags={**self.eni_tags, **ownership(self.cluster)},
            subnet_ids_filter=self.subnet_ids,
            subnet_tags_filter=self.subnet_tags,
            security_group_ids_filter=self.security_group_ids,
            security_group_tags_filter=self.security_group_tags,
        )


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from the process environment.

    Args:
        environment: only to look for unknown ENI_TASKS_ names; defaults to `os.environ`.

    Raises:
        InvalidInput: one line per mistake, unknown names (typos) included.
    """
    problems = []
    names = {field.upper() for field in Settings.model_fields} | FLOWER_SETTINGS
    for name in sorted(os.environ if environment is None else environment):
        bare = name.removeprefix(PREFIX)
        if bare != name and bare not in names and not _OF_A_SERVICE.search(bare):
            near = difflib.get_close_matches(bare, names, n=1)
            problems.append(f"{name}: no such setting" + (f"; did you mean {PREFIX}{near[0]}?" if near else ""))
    try:
        settings = Settings()
    except ValidationError as error:
        problems += [f"{PREFIX}{str(each['loc'][0]).upper()}: {problem(each)}" for each in error.errors()]
    if problems:
        raise InvalidInput("The settings can't be used:\n" + "\n".join(f"  {line}" for line in problems))
    return settings
