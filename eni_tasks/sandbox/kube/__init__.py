"""A Kubernetes API for CiliumNodes that runs on a laptop, in memory, over real HTTP.

It is the twin of the outside that the sandbox and the tests talk to through the real client. It answers
what a kube-apiserver answers (`tests/contract/test_kube_api.py` runs against both), and its knobs bring
out the bad days: latency, faults, broken and silent watches, forgotten history.
"""
