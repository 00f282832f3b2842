"""Every metric of the system: name, kind, labels, meaning. No metric is named anywhere else.

Gauges are computed by the exporter from shared state at each read. Counters and histograms are counted by the
processes that do the work (`counters`) and summed in Redis. Cilium's names and labels are kept where they mean the
same. `docs/metrics.md` shows this table. Every series also has the label CLUSTER.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

PREFIX = "eni_tasks_"
CLUSTER = "cluster"  # the value is ENI_TASKS_CLUSTER


class Kind(StrEnum):
    """What Prometheus may do with it. OPS are counters whose name lacks `_total`, as Cilium has them."""

    GAUGE = "gauge"
    COUNTER = "counter"
    OPS = "counter, untyped"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """One metric; the name is without the prefix. Those that are `per_node` can be switched off."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    per_node: bool = False


_CALL_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0)
_RUN_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_WAIT_SECONDS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
_CILIUM_SECONDS = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 60.0)

_SUBNET = ("subnet_id",)
_ATTEMPT = ("type", "status", "subnet_id")
_NODE = ("target_node",)

FLEET = (
    Metric(
        "ipam_available_ips",
        Kind.GAUGE,
        "The most addresses that the node can hold; absent while unknown",
        _NODE,
        per_node=True,
    ),
    Metric("ipam_used_ips", Kind.GAUGE, "Addresses of the node that pods use", _NODE, per_node=True),
    Metric("ipam_needed_ips", Kind.GAUGE, "Addresses that the node lacks to its watermarks", _NODE, per_node=True),
    Metric("ipam_pool_ips", Kind.GAUGE, "Addresses that the node holds for pods now", _NODE, per_node=True),
    Metric("ipam_ips", Kind.GAUGE, "Addresses of all nodes: available (held, used or not), used, needed", ("type",)),
    Metric(
        "ipam_nodes",
        Kind.GAUGE,
        "Nodes: total; in-deficit (lack addresses); at-capacity (no interface can take more)",
        ("category",),
    ),
    Metric("nodes", Kind.GAUGE, "Nodes by the planner's reason why there is (or is not) something to do", ("reason",)),
    Metric("nodes_ready", Kind.GAUGE, "Nodes whose pool is at size and shown in their object"),
    Metric("nodes_in_trouble", Kind.GAUGE, "Nodes whose last run met trouble; `eni-tasks status` shows it"),
    Metric(
        "oldest_deficit_seconds",
        Kind.GAUGE,
        "For how long a node has lacked addresses that it could have, the longest; 0 if none",
    ),
    Metric(
        "falls_behind",
        Kind.GAUGE,
        "1 once a node has lacked addresses, or a read has been overdue, for ENI_TASKS_STUCK_SECONDS",
    ),
    Metric("ipam_available_interfaces", Kind.GAUGE, "Interfaces that can take addresses: attached ones and free slots"),
    Metric("ipam_interface_candidates", Kind.GAUGE, "Attached interfaces that can take addresses"),
    Metric("ipam_empty_interface_slots", Kind.GAUGE, "Interfaces that can still be attached"),
    Metric(
        "ipam_available_ips_per_subnet",
        Kind.GAUGE,
        "Addresses of the subnet that can still be taken: free when described, less what was taken since",
        ("subnet_id", "availability_zone"),
    ),
    Metric(
        "subnet_cooling_down",
        Kind.GAUGE,
        "1 while no node chooses the subnet, because it reported that it is full",
        _SUBNET,
    ),
    Metric(
        "subnet_without_prefix",
        Kind.GAUGE,
        "1 while no node asks the subnet for a /28 prefix, because it reported that it has none",
        _SUBNET,
    ),
    Metric("orphans", Kind.GAUGE, "Unattached interfaces of ours that no node claims, as the collector last saw them"),
)

FACTS = (
    Metric("infrastructure_age_seconds", Kind.GAUGE, "Since VPCs, subnets and groups were last described"),
    Metric("inventory_age_seconds", Kind.GAUGE, "Since the last complete read of all instances began"),
    Metric("facts_oldest_age_seconds", Kind.GAUGE, "Since the known node that was read longest ago was read well"),
    Metric("ipam_resync_total", Kind.COUNTER, "Complete reads of all instances"),
    Metric(
        "ipam_background_sync_duration_seconds",
        Kind.HISTOGRAM,
        "Length of a read of all instances; status is success or failed",
        ("status",),
        _RUN_SECONDS,
    ),
)

WORK = (
    Metric("queue_length", Kind.GAUGE, "Messages that wait in the Celery queue", ("queue",)),
    Metric(
        "work_entries",
        Kind.GAUGE,
        "Pending work, by kind (maintain, publish, fleet) and state: queued, waiting (back-off, rate limit), claimed",
        ("kind", "state"),
    ),
    Metric("work_overdue", Kind.GAUGE, "Work that should have been served by now; it is requeued", ("kind",)),
    Metric(
        "work_oldest_overdue_seconds",
        Kind.GAUGE,
        "For how long the oldest work has been due without a run that began, requeued or not; 0 if none is due",
        ("kind",),
    ),
    Metric(
        "enqueued_total",
        Kind.COUNTER,
        "Work that was enqueued: sent as a message, or merged into work that is pending",
        ("kind", "outcome"),
    ),
    Metric(
        "task_wait_seconds",
        Kind.HISTOGRAM,
        "From sending a message to the start of its run, by the clocks of both machines",
        ("task",),
        _WAIT_SECONDS,
    ),
    Metric(
        "task_run_seconds",
        Kind.HISTOGRAM,
        "Length of a run; outcome is ok, skipped (another worker has the claim), failed, or error (it raised)",
        ("task", "outcome"),
        _RUN_SECONDS,
    ),
)

EC2 = (
    Metric(
        "ec2_api_duration_seconds",
        Kind.HISTOGRAM,
        "EC2 calls by action and answer: OK or EC2's error code",
        ("operation", "response_code"),
        _CALL_SECONDS,
    ),
    Metric(
        "ec2_api_rate_limit_duration_seconds",
        Kind.HISTOGRAM,
        "How long a call waited for a token within its run",
        ("operation",),
        _CALL_SECONDS,
    ),
    Metric(
        "ec2_rate_limit_tokens",
        Kind.GAUGE,
        "Tokens left in the bucket: calls that all workers together may make at once; absent without a limit",
        ("operation",),
    ),
    Metric(
        "ec2_rate_limit_size",
        Kind.GAUGE,
        "Tokens in a full bucket; absent without a limit",
        ("operation",),
    ),
    Metric(
        "ec2_rate_limit_share",
        Kind.GAUGE,
        "Share of the refill rate that is in force: 1; halved each time that EC2 throttles",
        ("operation",),
    ),
    Metric(
        "ec2_throttled_timestamp_seconds",
        Kind.GAUGE,
        "When EC2 last throttled the action, in seconds since 1970; absent if not within the hour",
        ("operation",),
    ),
    Metric(
        "ec2_items_left_out_total",
        Kind.COUNTER,
        "Items of EC2's answers that could not be understood; the log names each (`ec2_item_left_out`)",
    ),
    Metric("ec2_breaker_open", Kind.GAUGE, "1 while the action is stopped for all workers", ("operation",)),
    Metric("paused", Kind.GAUGE, "1 while a person paused all mutations"),
)

CHANGES = (
    Metric("ipam_ip_allocation_ops", Kind.OPS, "Addresses that EC2 gave, with new interfaces or without", _SUBNET),
    Metric("ipam_ip_release_ops", Kind.OPS, "Addresses that EC2 took back", _SUBNET),
    Metric("ipam_interface_creation_ops", Kind.OPS, "Interfaces that EC2 created", _SUBNET),
    Metric(
        "ipam_allocation_duration_seconds",
        Kind.HISTOGRAM,
        "Attempts to get addresses: type is allocateIP or createInterfaceAndAllocateIP, status is success, failed or "
        "Cilium's word for the step that failed",
        _ATTEMPT,
        _CILIUM_SECONDS,
    ),
    Metric(
        "ipam_release_duration_seconds",
        Kind.HISTOGRAM,
        "Attempts to give addresses back: type is releaseIP or releaseIPPrefixes, status is success or failed",
        _ATTEMPT,
        _CILIUM_SECONDS,
    ),
    Metric("orphans_deleted_total", Kind.COUNTER, "Left-over interfaces of ours that were deleted"),
    Metric(
        "kube_events_total",
        Kind.COUNTER,
        "Kubernetes Events about nodes: written, failed (the API server did not take it), left_out (above the limits)",
        ("outcome",),
    ),
)

# Cilium's operator has a trigger for each of these; here they are kinds of work. Derived by `exporter.triggers`.
TRIGGERS = {
    "deficit_resolver": "changes of nodes in EC2",
    "k8s_sync": "writes of objects",
    "resync": "passes over the fleet",
}
CILIUM = tuple(
    metric
    for trigger, what in TRIGGERS.items()
    for metric in (
        Metric(
            f"ipam_{trigger}_queued_total", Kind.COUNTER, f"Triggered {what}, those merged into pending work included"
        ),
        Metric(
            f"ipam_{trigger}_folds",
            Kind.GAUGE,
            f"Triggers that the next run serves at once, of {what}: the most of all pending ones; 0 if none is pending",
        ),
        Metric(
            f"ipam_{trigger}_duration_seconds",
            Kind.HISTOGRAM,
            f"Length of runs, of {what}; those that found another worker at work don't count",
            (),
            _RUN_SECONDS,
        ),
        Metric(f"ipam_{trigger}_latency_seconds", Kind.HISTOGRAM, f"From trigger to run, of {what}", (), _WAIT_SECONDS),
    )
)

EXPORTER = (
    Metric(
        "build_info",
        Kind.GAUGE,
        "1; the labels name the exporter's version and that of its Python",
        ("version", "python"),
    ),
    Metric("state_up", Kind.GAUGE, "1 if Redis answered the exporter's last read; 0: only the next one is shown"),
    Metric(
        "state_answered_timestamp_seconds",
        Kind.GAUGE,
        "When Redis last answered the exporter, in seconds since 1970; absent if it never did",
    ),
    Metric("exporter_read_seconds", Kind.GAUGE, "How long that read took"),
)

METRICS = {metric.name: metric for group in (FLEET, FACTS, WORK, EC2, CHANGES, CILIUM, EXPORTER) for metric in group}
