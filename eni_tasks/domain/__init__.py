"""Pure decisions: frozen values in, frozen values out; no clock, no IO, no logger.

`planner.plan` is the one door for "what next"; `status.desired` says what the CiliumNode should
show. The other modules are their vocabulary, one idea each.
"""
