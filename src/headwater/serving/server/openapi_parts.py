"""What the operations of the OpenAPI document have in common: schemas, parameters, headers and refusals."""

from __future__ import annotations

from typing import Any

from headwater.serving.server.media import JSON

__all__ = [
    "BINARY",
    "COMPONENTS",
    "FETCH_PARAMETERS",
    "Json",
    "json_content",
    "parameter",
    "ref",
    "refusals",
    "table_parameter",
]

Json = dict[str, Any]

BINARY: Json = {"type": "string", "format": "binary"}

_NAME = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}$"
_ERRORS = {
    400: "The request cannot be understood, or names something that does not fit the table.",
    401: "A token is needed, or the one that was sent is not known.",
    403: "The token does not allow this.",
    404: "There is no such table.",
    405: "The table cannot be changed by this API, since it follows its source.",
    406: "The answer cannot be given in a form that is accepted.",
    408: "The request was not complete in time.",
    409: "It conflicts with what is there, or a frontier was not reached in time.",
    413: "The request is larger than the server takes.",
    415: "The body has a form that is not read here.",
    431: "The headers are larger than the server takes.",
    503: "The server has too much to do, is being stopped, or has not loaded the table yet.",
}
_ALWAYS = (400, 401, 403, 408, 431, 503)


def ref(kind: str, name: str) -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}


def json_content(schema: Json) -> Json:
    return {JSON: {"schema": schema}}


def refusals(*statuses: int) -> Json:
    """The responses that refuse, by status."""
    return {str(status): ref("responses", f"Refused{status}") for status in sorted({*_ALWAYS, *statuses})}


def parameter(name: str, about: str, schema: Json, **more: Any) -> Json:
    return {"name": name, "in": "query", "description": about, "schema": schema, **more}


def table_parameter() -> Json:
    return ref("parameters", "table")


_FLAG: Json = {"type": "string", "enum": ["0", "1", "true", "false"]}
_COLUMN_NAMES: Json = {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True}
_FRONTIER: Json = {"type": "string", "examples": ["orders@42 cards@17"]}
_SECONDS: Json = {"type": "number", "minimum": 0, "maximum": 1_000_000}

FETCH_PARAMETERS: list[Json] = [
    parameter("columns", "Columns to fetch, with commas between; all but the key by default.", {"type": "string"}),
    parameter("found", "Add the column `_found`: whether there is a row for the key.", {**_FLAG, "default": "1"}),
    parameter(
        "status",
        "Add the column `_status`: 0 present, 2 not found, 3 older than the table's ttl.",
        {**_FLAG, "default": "0"},
    ),
    parameter("event_time", "Add the column `_event_time`.", {**_FLAG, "default": "0"}),
    parameter(
        "missing",
        "Keys without a row get nulls in the order of the request, or are dropped; then `_idx` has the "
        "position of each row.",
        {"type": "string", "enum": ["null", "drop"], "default": "null"},
    ),
    parameter("min_frontier", "Answer from this frontier or a later one, or not at all.", _FRONTIER),
    parameter("wait", "Seconds to wait for the frontier; 409 if it is not reached by then.", _SECONDS),
    parameter(
        "orient",
        "How JSON is laid out.",
        {"type": "string", "enum": ["columns", "rows"], "default": "columns"},
    ),
]

_OPTION_FIELDS: Json = {
    "columns": {"anyOf": [_COLUMN_NAMES, {"type": "null"}]},
    "found": {"type": "boolean"},
    "status": {"type": "boolean"},
    "event_time": {"type": "boolean"},
    "missing": {"type": "string", "enum": ["null", "drop"]},
    "min_frontier": {"anyOf": [_FRONTIER, {"type": "null"}]},
    "wait": _SECONDS,
    "orient": {"type": "string", "enum": ["columns", "rows"]},
}
_VALUE: Json = {"type": ["string", "number", "boolean", "null"]}
_KEYS: Json = {
    "description": "Values of the key; arrays of values if it has several columns; "
    "or arrays by the names of its columns.",
    "anyOf": [
        {"type": "array", "items": _VALUE},
        {"type": "array", "items": {"type": "array", "items": _VALUE}},
        {"type": "object", "additionalProperties": {"type": "array", "items": _VALUE}},
    ],
}
_ANSWER_VALUE: Json = {"description": "A value, as described under `Values in JSON`."}
_COLUMNS_OF_VALUES: Json = {"type": "object", "additionalProperties": {"type": "array", "items": _ANSWER_VALUE}}

_SCHEMAS: dict[str, Json] = {
    "Error": {
        "type": "object",
        "required": ["code", "message", "where", "hint"],
        "properties": {
            "code": {"type": "string", "pattern": "^E[0-9]{4}$", "description": "Stable: programs may rely on it."},
            "message": {"type": "string"},
            "where": {"type": ["string", "null"]},
            "hint": {"type": ["string", "null"], "description": "What to do next."},
            "error": {"type": "string", "description": "The message once more, on Murr's paths."},
        },
    },
    "FetchRequest": {
        "type": "object",
        "required": ["keys"],
        "properties": {"keys": _KEYS, **_OPTION_FIELDS},
        "additionalProperties": False,
    },
    "FetchAnswer": {
        "type": "object",
        "required": ["frontier", "version"],
        "properties": {
            "columns": _COLUMNS_OF_VALUES,
            "rows": {"type": "array", "items": {"type": "object"}},
            "found": {"type": "array", "items": {"type": "boolean"}},
            "status": {"type": "array", "items": {"type": "integer", "enum": [0, 2, 3]}},
            "event_time": {"type": "array", "items": _ANSWER_VALUE},
            "idx": {"type": "array", "items": {"type": "integer", "minimum": 0}},
            "frontier": {"type": "string"},
            "version": {"type": "integer", "minimum": 1},
        },
    },
    "SeveralRequest": {
        "type": "object",
        "required": ["keys", "tables"],
        "properties": {
            "keys": _KEYS,
            "tables": {
                "description": "Tables, each with the columns to fetch, or null for all of them.",
                "anyOf": [
                    {
                        "type": "object",
                        "minProperties": 1,
                        "propertyNames": {"pattern": _NAME, "maxLength": 200},
                        "additionalProperties": {"anyOf": [_COLUMN_NAMES, {"type": "null"}]},
                    },
                    {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": _NAME, "maxLength": 200}},
                ],
            },
            **{
                name: _OPTION_FIELDS[name]
                for name in ("found", "status", "event_time", "min_frontier", "wait", "orient")
            },
        },
        "additionalProperties": False,
    },
    "SeveralAnswer": {
        "type": "object",
        "required": ["frontier", "versions"],
        "properties": {
            "columns": {**_COLUMNS_OF_VALUES, "description": "Columns by `table.column`."},
            "rows": {"type": "array", "items": {"type": "object"}},
            "found": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}},
            "status": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
            "event_time": _COLUMNS_OF_VALUES,
            "frontier": {"type": "string"},
            "versions": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    },
    "Column": {
        "type": "object",
        "required": ["dtype"],
        "properties": {
            "dtype": {
                "type": "string",
                "description": "utf8, binary, bool, int8 to int64, uint8 to uint64, float16 to float64, decimal(p,s), "
                "date, timestamp, timestamp(unit,zone), or list<…> of a type of fixed width.",
                "examples": ["float32", "utf8", "list<float32>"],
            },
            "nullable": {"type": "boolean", "default": True},
            "key": {"type": "boolean", "default": False, "description": "Part of the key, as Murr writes it."},
            "strict": {"const": True, "description": "Values are never changed to fit; as Murr writes it."},
        },
        "additionalProperties": False,
    },
    "NewTable": {
        "type": "object",
        "required": ["columns"],
        "properties": {
            "key": {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string", "minLength": 1}},
                ]
            },
            "columns": {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"anyOf": [ref("schemas", "Column"), {"type": "string"}]},
            },
            "ttl": {"type": ["number", "null"], "exclusiveMinimum": 0, "description": "Seconds; needs `event_time`."},
            "event_time": {"type": ["string", "null"], "description": "The column that says how old a row is."},
        },
        "additionalProperties": False,
    },
    "Schema": {
        "type": "object",
        "required": ["key", "columns"],
        "properties": {
            "key": {"type": "array", "items": {"type": "string"}},
            "columns": {"type": "object", "additionalProperties": ref("schemas", "Column")},
            "ttl_s": {"type": ["number", "null"]},
            "event_time": {"type": ["string", "null"]},
        },
    },
    "MurrSchema": {
        "type": "object",
        "required": ["columns"],
        "properties": {"columns": {"type": "object", "additionalProperties": ref("schemas", "Column")}},
        "additionalProperties": False,
    },
    "Version": {
        "type": "object",
        "required": ["version", "frontier", "reach", "committed", "rows", "overlay_rows", "layers", "bytes"],
        "properties": {
            "version": {"type": "integer", "minimum": 1},
            "frontier": {"type": "string", "description": "The versions of its sources."},
            "reach": {"type": "string", "description": "The frontier, and what its sources reflect themselves."},
            "committed": {"type": "string", "format": "date-time"},
            "rows": {"type": "integer", "minimum": 0},
            "overlay_rows": {"type": "integer", "minimum": 0},
            "layers": {"type": "integer", "minimum": 1},
            "bytes": {"type": "integer", "minimum": 0},
        },
    },
    "Table": {
        "type": "object",
        "required": ["name", "loaded", "writable", "problem"],
        "properties": {
            "name": {"type": "string"},
            "loaded": {"type": "boolean"},
            "writable": {"type": "boolean", "description": "Whether rows can be written by this API."},
            "problem": {"type": ["string", "null"], "description": "Why it is not as it should be."},
        },
    },
    "RowsRequest": {
        "description": "Rows as objects, or columns as arrays. Rows replace those with the same keys.",
        "anyOf": [
            {"type": "array", "items": {"type": "object"}},
            {
                "type": "object",
                "required": ["rows"],
                "properties": {"rows": {"type": "array", "items": {"type": "object"}}},
                "additionalProperties": False,
            },
            {
                "type": "object",
                "required": ["columns"],
                "properties": {"columns": {"type": "object", "additionalProperties": {"type": "array"}}},
                "additionalProperties": False,
            },
        ],
    },
    "KeysRequest": {
        "type": "object",
        "required": ["keys"],
        "properties": {"keys": _KEYS},
        "additionalProperties": False,
    },
    "Written": {
        "type": "object",
        "required": ["version", "frontier"],
        "properties": {
            "rows": {"type": "integer", "minimum": 0},
            "keys": {"type": "integer", "minimum": 0},
            "version": {"type": "integer", "minimum": 1},
            "frontier": {"type": "string", "description": "Give it as `min_frontier` to read what was written."},
        },
    },
    "Readiness": {
        "type": "object",
        "required": ["status", "problems", "reasons"],
        "properties": {
            "status": {"type": "string", "enum": ["ready", "not ready"]},
            "problems": {"type": "integer", "minimum": 0},
            "reasons": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "By table, for those who may read it.",
            },
        },
    },
}

_HEADERS: dict[str, Json] = {
    "X-Frontier": {
        "description": "The versions of the sources that the answer reflects.",
        "required": True,
        "schema": {"type": "string"},
    },
    "LeastFrontier": {
        "description": (
            "Of each source the version that all listed tables have reached which it goes into. "
            "Absent where no table is loaded, and where it would take more than 8 KiB."
        ),
        "schema": {"type": "string"},
    },
    "X-Version": {
        "description": "The version of the table; of several tables, `name@version` for each.",
        "required": True,
        "schema": {"type": "string"},
    },
    "X-Request-Id": {"description": "The id that was sent with the request.", "schema": {"type": "string"}},
}

_REFUSED_HEADERS: dict[int, Json] = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}}},
    405: {"Allow": {"schema": {"type": "string"}}},
    503: {"Retry-After": {"schema": {"type": "string"}}},
}

COMPONENTS: Json = {
    "schemas": _SCHEMAS,
    "headers": _HEADERS,
    "parameters": {
        "table": {
            "name": "table",
            "in": "path",
            "required": True,
            "description": "The name of the table.",
            "schema": {"type": "string", "pattern": _NAME, "maxLength": 200},
        }
    },
    "responses": {
        f"Refused{status}": {
            "description": about,
            "content": json_content(ref("schemas", "Error")),
            **({"headers": _REFUSED_HEADERS[status]} if status in _REFUSED_HEADERS else {}),
        }
        for status, about in _ERRORS.items()
    },
}
