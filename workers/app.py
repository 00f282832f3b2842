"""The Celery app by name, for Celery's own commands: `celery -A workers.app call eni.maintain_node …`."""

from eni_tasks.settings import load
from eni_tasks.tasks.app import make_app

app = make_app(load())
