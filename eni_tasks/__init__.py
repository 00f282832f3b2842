"""A distributed task queue that keeps every Kubernetes node's pool of AWS addresses at the right size."""
