"""The shared state in Redis: work in flight, budgets, and a cache of facts (`eni_tasks.ports.state`).

`keys` names every key, `scripts/` holds the atomic operations (one file each), the other modules
are the parts of the ports. Redis is never the truth here: emptied, it is filled again from the API
server and from EC2.
"""
