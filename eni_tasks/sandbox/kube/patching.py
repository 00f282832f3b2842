"""JSON Patch (RFC 6902) and merge patch (RFC 7386), as far as the API server's clients use them.

Four operations on parsed JSON are less code than the translation of a library's errors.
Both functions may change the document they are given.
"""

from __future__ import annotations

from typing import Any

from eni_tasks.sandbox.kube.statuses import ApiError, patch_refused

_MISSING = object()


def json_patch(document: Any, operations: Any) -> Any:
    """Apply a list of operations.

    Args:
        document: parsed JSON.
        operations: `add`, `remove`, `replace` and `test`, each with a JSON pointer.

    Returns:
        The changed document.

    Raises:
        ApiError: 400 for a malformed patch, 422 when an operation cannot be applied or a test fails.
    """
    if not isinstance(operations, list):
        raise ApiError(400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    for operation in operations:
        _apply(document, operation)
    return document


def _apply(document: Any, operation: dict[str, Any]) -> None:
    kind, path, value = operation.get("op"), operation.get("path", ""), operation.get("value")
    parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
    if not parts:
        raise patch_refused()
    parent = document
    for part in parts[:-1]:
        parent = _child(parent, part)
    key = parts[-1]
    if kind == "test":
        if _child(parent, key) != value:
            raise patch_refused()
    elif kind == "add":
        _add(parent, key, value)
    elif kind in ("replace", "remove"):
        if _child(parent, key) is _MISSING:
            raise patch_refused()
        place = int(key) if isinstance(parent, list) else key
        if kind == "replace":
            parent[place] = value
        else:
            del parent[place]
    else:
        raise patch_refused()


def _child(parent: Any, key: str) -> Any:
    if isinstance(parent, dict):
        return parent.get(key, _MISSING)
    if isinstance(parent, list) and key.isdecimal() and int(key) < len(parent):
        return parent[int(key)]
    return _MISSING


def _add(parent: Any, key: str, value: Any) -> None:
    if isinstance(parent, dict):
        parent[key] = value
    elif isinstance(parent, list) and (key == "-" or (key.isdecimal() and int(key) <= len(parent))):
        parent.insert(len(parent) if key == "-" else int(key), value)
    else:
        raise patch_refused()


def merge_patch(document: Any, patch: Any) -> Any:
    """Merge `patch` into the document: null removes a field, everything but objects is replaced.

    Args:
        document: parsed JSON.
        patch: parsed JSON.

    Returns:
        The changed document.
    """
    if not isinstance(patch, dict):
        return patch
    merged = document if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged
