"""What the CiliumNode definition requires of an object: pruning and validation.

The definition itself (`ciliumnode-crd.yaml`, also installed on a real API server by the tests) is the only
source; this module walks its structural schema: types, properties, required, additionalProperties, items,
minimum and `x-kubernetes-preserve-unknown-fields`.
"""

from __future__ import annotations

import functools
from importlib import resources
from operator import itemgetter
from typing import Any

import yaml

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
_JSON_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
_METADATA_FIELDS = frozenset(
    [
        "name",
        "generateName",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ]
)


def definition() -> dict[str, Any]:
    """Returns the CustomResourceDefinition of CiliumNodes, as parsed YAML."""
    text = resources.files(__package__).joinpath("ciliumnode-crd.yaml").read_text(encoding="utf-8")
    parsed: dict[str, Any] = yaml.safe_load(text)
    return parsed


@functools.cache  # it takes longer to read than a server to start
def structural_schema() -> dict[str, Any]:
    """Returns the OpenAPI schema of the one served version."""
    schema: dict[str, Any] = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def prune(body: dict[str, Any], schema: dict[str, Any]) -> None:
    """Drop, in place, the fields that the schema doesn't know.

    Args:
        body: a CiliumNode.
        schema: from `structural_schema`.
    """
    for field in list(body):
        if field not in schema["properties"] or body[field] is None:
            del body[field]
    metadata = body["metadata"]
    for field in metadata.keys() - _METADATA_FIELDS:
        del metadata[field]
    for part in ("spec", "status"):
        if part in body:
            _prune(body[part], schema["properties"][part])


def _prune(value: Any, schema: dict[str, Any]) -> None:
    if isinstance(value, list):
        for item in value:
            _prune(item, schema.get("items", {}))
    if not isinstance(value, dict):
        return
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for field in list(value):
        if field in properties and value[field] is None:
            # As on the real server: null in a known field is the same as no field.
            del value[field]
        elif field in properties:
            _prune(value[field], properties[field])
        elif others is not None:
            _prune(value[field], others)
        elif not schema.get("x-kubernetes-preserve-unknown-fields"):
            del value[field]


def faults(body: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, str]]:
    """Find what the schema forbids.

    Args:
        body: a CiliumNode.
        schema: from `structural_schema`.

    Returns:
        One cause per fault, as a Status object lists them; empty when all is well.
    """
    found: list[dict[str, str]] = []
    _check(body, schema, "", found)
    return sorted(found, key=itemgetter("field"))


def _check(value: Any, schema: dict[str, Any], path: str, found: list[dict[str, str]]) -> None:
    kind = schema.get("type")
    if kind is not None and not _is_a(value, kind):
        actual = "null" if value is None else _JSON_NAMES[type(value)]
        text = f'Invalid value: "{actual}": {path} in body must be of type {kind}: "{actual}"'
        found.append({"reason": "FieldValueInvalid", "message": text, "field": path})
    elif isinstance(value, dict):
        _check_fields(value, schema, path, found)
    elif isinstance(value, list):
        for item in value:
            _check(item, schema.get("items", {}), path, found)
    elif "minimum" in schema and value < schema["minimum"]:
        text = f"Invalid value: {value}: {path} in body should be greater than or equal to {schema['minimum']}"
        found.append({"reason": "FieldValueInvalid", "message": text, "field": path})


def _check_fields(value: dict[str, Any], schema: dict[str, Any], path: str, found: list[dict[str, str]]) -> None:
    prefix = f"{path}." if path else ""
    found.extend(
        {"reason": "FieldValueRequired", "message": "Required value", "field": f"{prefix}{field}"}
        for field in schema.get("required", ())
        if field not in value
    )
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for field, item in value.items():
        below = properties.get(field, others)
        if below:
            _check(item, below, f"{prefix}{field}", found)


def _is_a(value: Any, kind: str) -> bool:
    # In Python a bool is an int; in JSON it isn't a number.
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
