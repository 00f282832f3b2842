"""Shared state as Prometheus sees it: gauges computed at each read, sums of what the processes counted."""
