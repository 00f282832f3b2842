"""The shared state in Redis: work, rate limits, and a cache of what EC2 and the API server show.

`State` is what the other packages use. `keys` names every key, `scripts/` holds the atomic operations (one file
each), and `runs` sends in one round trip what a run reads or writes together. Redis is never the source of
truth here: after its data is lost, it is filled again from the API server and from EC2.
"""

from eni_tasks.state.state import State

__all__ = ["State"]
