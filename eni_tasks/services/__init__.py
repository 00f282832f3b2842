"""Use cases: what happens when a node changed, a run is due, facts are to be read. Orchestration over ports."""
