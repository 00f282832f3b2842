"""The process that sees changes: lists and watches CiliumNodes, and ticks once a second.

Any number of watchers may run, all active: what they store and enqueue is idempotent, and periodic work is started by
the watcher that gets its slot. Decisions are made in `eni_tasks.services`.
"""
