"""Logs: constant events with fields."""
