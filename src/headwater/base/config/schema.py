"""JSON Schemas of configuration files, which editors check and complete files by.

Each is shipped beside the models that it is of. Wherever a number or a boolean is wanted, ``${VARIABLE}`` is valid too.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

__all__ = ["schema_text"]

_REFERENCE = {"type": "string", "pattern": "\\$\\{.+\\}"}


class _WithReferences(GenerateJsonSchema):
    def int_schema(self, schema: core_schema.IntSchema) -> dict[str, Any]:
        return _or_reference(super().int_schema(schema))

    def float_schema(self, schema: core_schema.FloatSchema) -> dict[str, Any]:
        return _or_reference(super().float_schema(schema))

    def bool_schema(self, schema: core_schema.BoolSchema) -> dict[str, Any]:
        return _or_reference(super().bool_schema(schema))


def _or_reference(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, dict(_REFERENCE)]}


def schema_text(root: type[BaseModel], title: str) -> str:
    """The schema of what a file holds, as text."""
    schema = root.model_json_schema(schema_generator=_WithReferences)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    schema.pop("title", None)
    return json.dumps({**head, **_unwrapped(schema)}, indent=2, ensure_ascii=False) + "\n"


def _unwrapped(value: Any) -> Any:
    """The schema with each description on one line, however the docstring is wrapped."""
    if isinstance(value, dict):
        return {
            key: " ".join(one.split()) if key == "description" and isinstance(one, str) else _unwrapped(one)
            for key, one in value.items()
        }
    return [_unwrapped(one) for one in value] if isinstance(value, list) else value
