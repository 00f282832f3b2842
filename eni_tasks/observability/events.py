"""Every log event: its constant word and what it means.

`docs/operations.md` shows this table; a test compares it with the events that the code logs.
"""

from __future__ import annotations

EVENTS = {
    # changes
    "task_done": "A task changed something: `did` in EC2, `wrote` parts of the object",
    "node_new": "The watcher saw a node for the first time",
    "node_removed": "The watcher saw that a CiliumNode was deleted",
    "objects_listed": "The watcher listed all CiliumNodes, or all pods that wait",
    "orphan_found": "An interface of ours is attached to nothing; it is deleted after the grace period",
    "orphan_deleted": "Such an interface was deleted",
    # what people did
    "task_refused": "A task was started with wrong arguments or for an unknown node; nothing was done",
    # EC2
    "ec2_refused": "EC2 refused a mutation: `code`, and the `reaction` that follows",
    "ec2_called": "With `ENI_TASKS_LOG_LEVEL=debug`: each call of EC2",
    "release_not_made": "The object forbade a release at the last moment: `reason`; the node is planned again",
    "read_failed": "A read of EC2 failed; facts stay as they were",
    "limits_not_read": "The limits of instance types could not be read; nodes of new types wait",
    "orphans_not_listed": "Interfaces that were left behind could not be listed; the next pass tries again",
    "read_lacks_something": "A read lacks a known interface or address; it is believed once a second read agrees",
    "instance_shows_no_interfaces": "EC2 shows no interface of an instance; its node waits",
    "instance_type_unknown": "EC2 gives no limits for an instance type; nodes of that type wait",
    "ec2_item_left_out": "An item of EC2's answer can't be used; only the nodes concerned wait",
    # objects
    "node_not_understood": "A CiliumNode can't be used; only that node waits",
    "node_not_planned": "No plan could be made for a node after a read; only that node waits",
    "object_not_written": "The API server refused a write or did not answer; it is tried again",
    "event_not_written": "A Kubernetes Event about a node is lost; logged every ten minutes, and nothing else follows",
    "watch_silent": "With `ENI_TASKS_LOG_LEVEL=debug`: a watch was silent for `seconds` and is opened again",
    "watch_failed": "Listing or watching CiliumNodes was interrupted; it is tried again",
    # leases
    "claim_lost": "A worker's claim ended before its run did; another worker continues with the node",
    "lease_lost": "A lease could not be renewed, because another worker has the node",
    "leases_not_renewed": "Redis did not answer a renewal; the claims may end",
    # Redis
    "messages_not_sent": "Redis did not take messages; the work is requeued as overdue",
    "tick_failed": "A watcher's tick failed; the next one follows a second later",
    "counts_lost": "Counts could not be added to the shared sums",
    "state_unavailable": "Redis did not serve the exporter or a task; work on nodes is requeued",
    "message_rejected": "A message of a wrong form was thrown away: its `queue` and the `problem`",
    "state_value_unreadable": "A value in Redis can't be decoded; it counts as unknown until it is written again",
    "state_key_deleted": "A key in Redis had another `type` than `expected`; its content is lost; all is read again",
    "broker_connection_lost": "A connection of Celery to Redis was lost; its message is delivered again",
    "broker_refused": "Redis refused to extend the lifetime of a key of Celery's; it is tried again in a minute",
    "state_went_back": "Redis lost its data or last writes (restart, failover); all is listed and read again",
    "objects_went_back": "The API server's objects are older than the stored ones: etcd was restored",
    "leftovers_deleted": "What was left in Redis of a node that does not exist was deleted",
    "call_not_sent": "A mutation was not sent: the process had stood still for too long after it was permitted",
    "run_failed": "A bug ended a run; `exception` has the trace, and the node is tried again after 30 s",
    # processes
    "falls_behind": "A node has lacked addresses, or a read has been due, for `ENI_TASKS_STUCK_SECONDS`",
    "keeps_up": "That is over",
    "worker_stopping": "A worker received a signal; running tasks are finished",
    "exporter_started": "The exporter listens at `address`:`port`, its status page at `page_address`:`page_port`",
    "page_failed": "A bug kept the exporter from showing a page of the status page; `exception` has the trace",
    "exporter_stopped": "The exporter received a signal",
    "events_not_received": "Flower can't receive the workers' events from Redis; it tries again",
    "flower_without_password": "Flower runs without a password on an address that other machines reach",
    "probe_not_written": "A file for the pod's probes could not be written",
    "unhandled_error": "A bug ended a thread or a process; `exception` has the trace",
}
