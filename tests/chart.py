"""The chart, rendered by Helm's own library: value sets that cover its options, and ways to look at the result."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import helm_python
import yaml

ROOT = Path(__file__).parents[1]
CHART = ROOT / "helm" / "eni-tasks"
NAMESPACE, RELEASE = "kube-system", "eni-tasks"

Values = dict[str, Any]
Object = dict[str, Any]

EXTERNAL_REDIS: Values = {"urlSecret": {"name": "our-redis"}, "caSecret": {"name": "our-redis-ca"}}
SCALED_BY = {
    by: {queue: {"autoscaling": {"by": by}} for queue in ("ec2", "apiserver")} for by in ("none", "cpu", "queue")
}

NEAR_SYSTEM: Values = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["system"]}]}]
        }
    }
}
PLACED: Values = {
    "nodeSelector": {"disk": "local"},
    "tolerations": [{"key": "batch", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "priorityClassName": "system-node-critical",
    "podLabels": {"tier": "network"},
    "podAnnotations": {"note": "own"},
    "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}],
    "strategy": {"type": "Recreate"},
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
    "extraEnv": [{"name": "PYTHONMALLOC", "value": "malloc"}],
    "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
}
OF_REDIS = ("nodeSelector", "tolerations", "affinity", "priorityClassName", "podLabels", "podAnnotations", "resources")

# Each is a way to install it; together they reach every line of the templates.
VALUE_SETS: dict[str, Values] = {
    "defaults": {},
    "minimal": {
        "exporter": {"enabled": False},
        "podDisruptionBudgets": {"enabled": False},
        "redis": {"bundled": {"persistence": {"enabled": False}}},
        "rbac": {"create": False},
        "serviceAccount": {"create": False, "name": "given"},
        "watcher": {"replicas": 1},
        "workers": {"apiserver": {"replicas": 1}, "ec2": {"replicas": 1}, "resync": {"replicas": 0}},
    },
    "external-redis": {"redis": EXTERNAL_REDIS, "networkPolicy": {"enabled": True, "redisPort": 6380}},
    "scaled-by-cpu": {"workers": SCALED_BY["cpu"]},
    "scaled-by-queue": {"workers": SCALED_BY["queue"]},
    "scaled-by-queue-external": {
        "redis": EXTERNAL_REDIS,
        "workers": SCALED_BY["queue"],
        "keda": {"address": "redis.example:6380", "tls": True, "database": 3, "triggerAuthentication": "our-redis"},
    },
    "everything": {
        "settings": {
            "resync_seconds": 30,
            "rate_limits": {"AttachNetworkInterface": "10:1"},
            "eni_tags": {"team": "net"},
            "subnet_ids": ["subnet-1", "subnet-2"],
            "security_group_ids": ["sg-1"],
            "security_group_tags": {"for": "pods"},
            "page_address": "0.0.0.0",  # noqa: S104 - what is given
        },
        "aws": {"region": "eu-central-1", "ec2Endpoint": "https://ec2.example"},
        "image": {"digest": "sha256:" + "0" * 64, "pullSecrets": ["ours"]},
        "redis": {"bundled": {"persistence": {"storageClass": "gp3"}, "passwordSecret": {"name": "ours", "key": "pw"}}},
        "workers": SCALED_BY["queue"],
        "flower": {"enabled": True, "authSecret": {"name": "flower"}},
        "hostNetwork": False,
        "kubernetesApi": {"host": "api.example", "port": "8443"},
        "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/eni-tasks"}},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "podAnnotations": {"note": "x"},
        "podLabels": {"team": "net"},
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}],
        "networkPolicy": {
            "enabled": True,
            "redisFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "keda"}}}],
            "exporterFrom": [{"podSelector": {}}],
        },
        "monitoring": {
            "serviceMonitor": {"enabled": True, "labels": {"prometheus": "main"}},
            "alerts": {"enabled": True, "runbook": "https://wiki.example/eni-tasks"},
            "dashboard": {"enabled": True},
        },
    },
    # What each process takes of its own, besides what holds for all of them.
    "placed": {
        "commonLabels": {"owner": "net"},
        "image": {"pullSecrets": ["ours"]},
        "podLabels": {"cost": "shared"},
        "podAnnotations": {"note": "all"},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": NEAR_SYSTEM,
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}],
        "extraVolumes": [{"name": "cas", "configMap": {"name": "cas"}}],
        "extraVolumeMounts": [{"name": "cas", "mountPath": "/etc/cas", "readOnly": True}],
        "watcher": PLACED,
        "workers": dict.fromkeys(("ec2", "apiserver", "resync"), PLACED),
        "exporter": PLACED,
        "flower": {**PLACED, "extraArgs": ["--max-tasks", "100"], "enabled": True, "openToAll": True},
        "redis": {"bundled": {key: PLACED[key] for key in OF_REDIS}},
        "monitoring": {
            "serviceMonitor": {
                "enabled": True,
                "interval": "1m",
                "scrapeTimeout": "30s",
                "relabelings": [{"targetLabel": "tier", "replacement": "network"}],
                "metricRelabelings": [{"action": "drop", "sourceLabels": ["__name__"], "regex": "process_.*"}],
            },
            "alerts": {
                "enabled": True,
                "limits": {
                    "deficitSeconds": 120,
                    "atCapacityShare": 0.35,
                    "unreadSeconds": 1200,
                    "overduePassSeconds": 90,
                },
                "rules": {
                    "EniTasksOrphans": {"enabled": False},
                    "EniTasksPaused": {"for": "4h", "severity": "info"},
                    "EniTasksThrottled": {"expr": "vector(0) > 1"},
                },
            },
        },
    },
    "flower-for-all": {
        "flower": {"enabled": True, "openToAll": True, "urlPrefix": "/tools/flower", "readOnly": True},
        "networkPolicy": {"enabled": True},
    },
}


def with_cluster(values: Values) -> Values:
    """The values that have no default."""
    return {
        **values,
        "settings": {"cluster": "demo", **values.get("settings", {})},
        "image": {"repository": "registry.example/team/eni-tasks", **values.get("image", {})},
    }


def render(values: Values, *, namespace: str = NAMESPACE) -> dict[str, str]:
    """Render the chart; returns the text of each template.

    Raises:
        helm_python.HelmError: the values are refused.
    """
    return _rendered(json.dumps(with_cluster(values)), namespace)


@functools.cache
def _rendered(values: str, namespace: str) -> dict[str, str]:
    with helm_python.Chart.load(CHART) as chart:
        return chart.render(json.loads(values), name=RELEASE, namespace=namespace)


def objects(values: Values, *, namespace: str = NAMESPACE) -> list[Object]:
    """Render the chart; returns the Kubernetes objects."""
    texts = [text for path, text in render(values, namespace=namespace).items() if not path.endswith("NOTES.txt")]
    return [found for text in texts for found in yaml.load_all(text, yaml.CSafeLoader) if found]


def one(found: list[Object], kind: str, name: str) -> Object:
    """The one object of that kind and name (without the release's)."""
    (only,) = [o for o in found if o["kind"] == kind and o["metadata"]["name"] == f"{RELEASE}-{name}".rstrip("-")]
    return only


def workloads(found: list[Object]) -> dict[str, Object]:
    """Deployments and StatefulSets by component."""
    return {
        o["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: o
        for o in found
        if o["kind"] in ("Deployment", "StatefulSet")
    }


def pod(workload: Object) -> dict[str, Any]:
    """The pod's spec."""
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    return spec


def container(workload: Object) -> dict[str, Any]:
    """Its only container."""
    (only,) = pod(workload)["containers"]
    found: dict[str, Any] = only
    return found


def environment(found: list[Object], component: str) -> dict[str, str]:
    """The variables of a component whose values are known before it runs."""
    given = container(workloads(found)[component])
    known = {e["name"]: e["value"] for e in given["env"] if "value" in e}
    return one(found, "ConfigMap", "settings")["data"] | known


def file(name: str) -> Any:
    """A JSON file of the chart."""
    return json.loads((CHART / "files" / name).read_text())
