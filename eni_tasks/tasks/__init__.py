"""The Celery app and its thin tasks: names and arguments are a wire format."""
