"""Pods follow the work that is pending in Redis, or the CPU, or only people."""

from __future__ import annotations

import pytest
from chart import EXTERNAL_REDIS, SCALED_BY, VALUE_SETS, objects, one, workloads

from eni_tasks.state.keys import Keys

SCALED = ("ec2", "apiserver")


@pytest.mark.parametrize("queue", SCALED)
def test_keda_measures_the_messages_that_wait_for_a_worker(queue):
    """Work that waits for a breaker, a token or the end of a back-off has none."""
    found = objects({"workers": SCALED_BY["queue"], "settings": {"cluster": "prod-1.eu"}})
    scaled = one(found, "ScaledObject", f"worker-{queue}")["spec"]
    (trigger,) = scaled["triggers"]
    assert trigger["metadata"]["listName"] == Keys("prod-1.eu").queue(queue)
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
@pytest.mark.parametrize("queue", SCALED)
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


def test_tls_is_said_once_to_keda():
    """It refuses `enableTLS`, true or false, beside a TriggerAuthentication that has `tls`, as one with a CA has."""
    keda = {"address": "redis.example:6380", "triggerAuthentication": "with-tls-and-ca"}
    for values in ({"redis": EXTERNAL_REDIS, "keda": keda}, {}):
        found = objects({"workers": SCALED_BY["queue"], **values})
        (trigger,) = one(found, "ScaledObject", "worker-ec2")["spec"]["triggers"]
        assert "enableTLS" not in trigger["metadata"]


def test_a_queue_may_be_served_by_nobody():
    assert workloads(objects(VALUE_SETS["minimal"]))["worker-resync"]["spec"]["replicas"] == 0
