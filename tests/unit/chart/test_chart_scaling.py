"""Pods follow the work that is pending in Redis, or the CPU, or only people."""

from __future__ import annotations

import pytest
from chart import EXTERNAL_REDIS, SCALED_BY, VALUE_SETS, objects, one, workloads

from eni_tasks.model.work import WorkKind
from eni_tasks.state.keys import Keys

KINDS = {"ec2": WorkKind.MAINTAIN, "apiserver": WorkKind.PUBLISH}


@pytest.mark.parametrize("queue", KINDS)
def test_keda_measures_the_very_keys_that_the_work_is_in(queue):
    found = objects({"workers": SCALED_BY["queue"], "settings": {"cluster": "prod-1.eu"}})
    scaled = one(found, "ScaledObject", f"worker-{queue}")["spec"]
    (trigger,) = scaled["triggers"]
    assert trigger["metadata"]["listName"] == Keys("prod-1.eu").pending(KINDS[queue])
    assert scaled["scaleTargetRef"]["name"] == workloads(found)[f"worker-{queue}"]["metadata"]["name"]
    assert scaled["minReplicaCount"] >= 1  # with none, requeued work would find no worker


def test_keda_gets_the_password_of_the_bundled_redis():
    found = objects({"workers": SCALED_BY["queue"]})
    (target,) = one(found, "TriggerAuthentication", "redis")["spec"]["secretTargetRef"]
    secret = one(found, "Secret", "redis")
    assert target == {"parameter": "password", "name": secret["metadata"]["name"], "key": "password"}
    assert target["key"] in secret["data"]
    (trigger,) = one(found, "ScaledObject", "worker-ec2")["spec"]["triggers"]
    assert trigger["authenticationRef"] == {"name": "eni-tasks-redis"}
    assert trigger["metadata"]["address"] == "eni-tasks-redis.kube-system.svc:6379"


def test_keda_reaches_another_redis_as_told():
    found = objects(VALUE_SETS["scaled-by-queue-external"])
    (trigger,) = one(found, "ScaledObject", "worker-ec2")["spec"]["triggers"]
    assert trigger["metadata"]["address"] == "redis.example:6380"
    assert trigger["metadata"]["enableTLS"] == "true"
    assert trigger["metadata"]["databaseIndex"] == "3"
    assert trigger["authenticationRef"] == {"name": "our-redis"}
    assert [o for o in found if o["kind"] == "TriggerAuthentication"] == []


@pytest.mark.parametrize("by", SCALED_BY)
@pytest.mark.parametrize("queue", KINDS)
def test_one_decides_the_number_of_pods(by, queue):
    keda = {"address": "redis.example:6379"}
    found = objects({"workers": SCALED_BY[by], "redis": EXTERNAL_REDIS, "keda": keda})
    autoscalers = [
        o["kind"]
        for o in found
        if o.get("spec", {}).get("scaleTargetRef", {}).get("name") == f"eni-tasks-worker-{queue}"
    ]
    assert autoscalers == {"none": [], "cpu": ["HorizontalPodAutoscaler"], "queue": ["ScaledObject"]}[by]
    # An upgrade must not undo what an autoscaler decided.
    assert ("replicas" in workloads(found)[f"worker-{queue}"]["spec"]) == (by == "none")


def test_a_queue_may_be_served_by_nobody():
    assert workloads(objects(VALUE_SETS["minimal"]))["worker-resync"]["spec"]["replicas"] == 0
