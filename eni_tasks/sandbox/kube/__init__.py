"""A Kubernetes API for CiliumNodes that runs on a laptop, in memory, over real HTTP.

The sandbox and the tests talk to it through the real client. It answers what a kube-apiserver answers
(`tests/contract/kube` runs against both). Its knobs add latency, faults, broken and silent watches and
forgotten history.
"""
