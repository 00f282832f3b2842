"""The edges: EC2, Kubernetes and Redis, each behind a port and unaware of the others."""
