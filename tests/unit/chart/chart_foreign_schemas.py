"""Schemas of the fields that the chart uses of other people's kinds (KEDA's, the Prometheus operator's).

Written from their documentation, strict about unknown fields: Kubernetes' own schemas know nothing of them.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}
DURATION: Schema = {"type": "string", "pattern": r"^\d+[smh]$"}
LABELS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def record(required: dict[str, Schema], **optional: Schema) -> Schema:
    properties = {**required, **optional}
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": list(required)}


def many(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


def kind(version: str, name: str, spec: Schema) -> Schema:
    metadata = record({"name": TEXT, "namespace": TEXT, "labels": LABELS})
    return record({"apiVersion": {"const": version}, "kind": {"const": name}, "metadata": metadata, "spec": spec})


_REDIS_TRIGGER = record(
    {"address": {"type": "string", "pattern": r"^[^:]+:\d+$"}, "listName": TEXT, "listLength": TEXT},
    databaseIndex={"type": "string", "pattern": r"^\d+$"},
    # KEDA refuses it beside a `tls` of the TriggerAuthentication, whichever its value: written only if it is true.
    enableTLS={"const": "true"},
)
_POLICY = record({"type": {"enum": ["Pods", "Percent"]}, "value": COUNT, "periodSeconds": COUNT})
_BEHAVIOUR = record({"scaleDown": record({"stabilizationWindowSeconds": COUNT}, policies=many(_POLICY))})
_SCALED_OBJECT = record(
    {
        "scaleTargetRef": record({"name": TEXT}, apiVersion=TEXT, kind=TEXT),
        "triggers": many(
            record(
                {"type": {"const": "redis"}, "metadata": _REDIS_TRIGGER},
                metricType={"enum": ["AverageValue", "Value"]},
                authenticationRef=record({"name": TEXT}),
            )
        ),
    },
    pollingInterval=COUNT,
    minReplicaCount=COUNT,
    maxReplicaCount=COUNT,
    fallback=record({"failureThreshold": COUNT, "replicas": COUNT}),
    advanced=record({"horizontalPodAutoscalerConfig": record({"behavior": _BEHAVIOUR})}),
)
_RULE = record(
    {
        "alert": TEXT,
        "expr": TEXT,
        "labels": LABELS,
        "annotations": record(
            {"summary": TEXT, "description": TEXT},
            runbook_url={"type": "string", "pattern": r"^https?://[^#]+#[a-z]+$"},
        ),
    },
    **{"for": DURATION},
)

_RELABELING = record(
    {},
    action=TEXT,
    sourceLabels=many(TEXT),
    separator=TEXT,
    regex=TEXT,
    targetLabel=TEXT,
    replacement={"type": "string"},
    modulus=COUNT,
)
_ENDPOINT = record(
    {"port": TEXT, "interval": DURATION, "scrapeTimeout": DURATION, "honorLabels": {"type": "boolean"}},
    relabelings=many(_RELABELING),
    metricRelabelings=many(_RELABELING),
)

FOREIGN: dict[str, Schema] = {
    "ScaledObject": kind("keda.sh/v1alpha1", "ScaledObject", _SCALED_OBJECT),
    "TriggerAuthentication": kind(
        "keda.sh/v1alpha1",
        "TriggerAuthentication",
        record({"secretTargetRef": many(record({"parameter": TEXT, "name": TEXT, "key": TEXT}))}),
    ),
    "ServiceMonitor": kind(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        record(
            {"selector": record({"matchLabels": LABELS}), "endpoints": many(_ENDPOINT)},
        ),
    ),
    "PrometheusRule": kind(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        record({"groups": many(record({"name": TEXT, "rules": many(_RULE)}, interval=DURATION))}),
    ),
}
