"""The JSON Schema of a configuration file, which editors check and complete files by.

It is shipped beside this file (``schema.json``). ``HEADWATER_UPDATE_GOLDEN=1 pytest tests/serving/config`` writes it
again after a change of the models. Wherever a number or a boolean is wanted, ``${VARIABLE}`` is valid too.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from headwater.serving.config.config import Config

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


def schema_text() -> str:
    """The schema, as its file holds it."""
    schema = Config.model_json_schema(schema_generator=_WithReferences)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Headwater: headwater serve"}
    schema.pop("title", None)
    return json.dumps({**head, **schema}, indent=2, ensure_ascii=False) + "\n"
