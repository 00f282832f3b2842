"""The status page: what `eni-tasks status` says, drawn, for a browser. It changes nothing."""
