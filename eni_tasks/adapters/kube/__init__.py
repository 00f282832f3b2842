"""The Kubernetes API server: the only place that knows the vendor's client, paths and Status objects."""
