"""Write what the chart's values may hold of eni_tasks/settings.py: `make docs`. A test fails when it is due."""

from __future__ import annotations

import json
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eni_tasks.settings import Settings

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

SCHEMA = Path(__file__).parents[1] / "helm" / "eni-tasks" / "values.schema.json"
# Not among the chart's `settings`: the URL comes from a Secret; the chart mounts the folder, chooses the page's
# port, and knows the pod.
ELSEWHERE = {"redis_url", "probe_dir", "page_port", "pod_name"}
TEXT = {"type": "string"}


def place(field: FieldInfo) -> dict[str, Any]:
    """What may be given for a setting; its bounds are the process's to check."""
    if typing.get_origin(field.annotation) is typing.Literal:
        return {"enum": list(typing.get_args(field.annotation))}
    match field.default:
        case bool():
            return {"type": "boolean"}
        case int() | float():
            return {"type": "number"}
        case tuple():
            return {"type": ["array", "string"], "items": TEXT}
        case dict():
            return {"type": ["object", "string"], "additionalProperties": TEXT}
        case _:
            return TEXT


def current(text: str) -> str:
    """The schema with the settings as they must be; what stands around them stays."""
    schema = json.loads(text)
    places = {name: place(field) for name, field in Settings.model_fields.items() if name not in ELSEWHERE}
    schema["properties"]["settings"]["properties"] = places
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(current(SCHEMA.read_text()))
