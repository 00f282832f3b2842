"""The process that sees changes: lists and watches CiliumNodes, and ticks once a second.

Any number of watchers may run, all active: what they store and mark is idempotent, and what is periodic
is started by whoever gets the slot. Decisions are made in `eni_tasks.services`.
"""
