"""Shared state as Prometheus sees it: gauges computed at each look, sums of what the processes counted."""
