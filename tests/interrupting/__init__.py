"""Worker processes that end at a point of their way: `server` forks them, `points` ends them."""
