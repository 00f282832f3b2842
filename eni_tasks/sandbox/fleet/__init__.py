"""Simulated nodes: their instances in the sandbox's EC2, their CiliumNodes, and the agents that write them.

`agents` says what each kind of agent writes and accepts, without any I/O. `nodes` launches instances and
carries the objects between agents and the Kubernetes API, and lets pods come and go.
"""

from eni_tasks.sandbox.fleet.agent120 import Agent120, Agent120DualStack
from eni_tasks.sandbox.fleet.agents import Agent, Agent16
from eni_tasks.sandbox.fleet.nodes import TYPES, Agents, Fleet, node_name

__all__ = ["TYPES", "Agent", "Agent16", "Agent120", "Agent120DualStack", "Agents", "Fleet", "node_name"]
