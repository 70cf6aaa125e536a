"""The JSON schema of a document, from its types; `python -m evenhand.auditing.document.json_schema` prints the file."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from itertools import chain
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from evenhand.auditing.document.overall import SCHEMA, Document
from evenhand.auditing.document.values import AtLeast, Known, hints_of
from evenhand.stats import Interval

PLAIN = {str: "string", int: "integer", bool: "boolean", NoneType: "null"}

Schema = dict[str, Any]  # JSON schemas have no fixed keys


def json_schema() -> Schema:
    """The schema of audit.json: every key is there, and there is no other."""
    defined: dict[str, Schema] = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA,
        "title": "Result of evenhand audit, version 1",
        "description": "Any change of keys makes a new version. Numbers that are not finite are null.",
        **_object(Document, defined),
        "$defs": {name: defined[name] for name in sorted(defined)},
    }


def schema_text() -> str:
    """The content of audit.schema.json."""
    return json.dumps(json_schema(), ensure_ascii=False, indent=1) + "\n"


def _object(kind: Any, defined: dict[str, Schema]) -> Schema:
    hints = hints_of(kind)
    return {
        "type": "object",
        "properties": {name: _of(hint, defined) for name, hint in hints.items()},
        "required": list(hints),
        "additionalProperties": False,
    }


def _of(hint: Any, defined: dict[str, Schema]) -> Schema:
    """The schema of one type; classes are defined once and referred to."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return {"type": PLAIN[hint]}
    if hint is float:
        return {"type": ["number", "null"]}
    if isinstance(hint, type) and (is_dataclass(hint) or hint is Interval):
        name = hint.__name__
        if name not in defined:
            defined[name] = {}  # before what is inside of it, which may refer to it
            defined[name] = _object(hint, defined)
        return {"$ref": f"#/$defs/{name}"}
    if origin is Annotated:
        return _marked(inside[0], inside[1:])
    if origin is Literal:
        return {"const": inside[0]} if len(inside) == 1 else {"enum": list(inside)}
    if origin is list:
        return {"type": "array", "items": _of(inside[0], defined)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(inside[1], defined)}
    if origin is tuple:
        parts = [_of(part, defined) for part in inside]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    if origin in (Union, UnionType):
        return _any_of([_of(part, defined) for part in inside])
    raise TypeError(f"A document cannot hold {hint!r}: use dataclasses, lists, tuples, dicts and plain values.")


def _marked(hint: Any, marks: tuple[Any, ...]) -> Schema:
    schema: Schema = {"type": "number" if any(isinstance(mark, Known) for mark in marks) else PLAIN[hint]}
    for mark in marks:
        if isinstance(mark, AtLeast):
            schema["minimum"] = mark.least
    return schema


def _any_of(parts: list[Schema]) -> Schema:
    """One schema for several: plain types are listed, anything else stands beside them."""
    if all(list(part) == ["type"] for part in parts):
        types = [part["type"] if isinstance(part["type"], list) else [part["type"]] for part in parts]
        return {"type": list(dict.fromkeys(chain.from_iterable(types)))}
    return {"anyOf": parts}


if __name__ == "__main__":
    print(schema_text(), end="")  # noqa: T201 - this is what it is run for
