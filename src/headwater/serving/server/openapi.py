"""The OpenAPI 3.1 document of the API: every path, every parameter, every answer.

It is written here by hand, beside the routes; a test holds it against them, and another asks the server everything that
it allows.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from headwater.serving.server.media import ARROW, JSON, PARQUET
from headwater.serving.server.openapi_parts import (
    BINARY,
    COMPONENTS,
    FETCH_PARAMETERS,
    Json,
    json_content,
    parameter,
    ref,
    refusals,
    table_parameter,
)

__all__ = ["document"]

_ABOUT = """Rows of online tables by key: "columns X, Y, Z for these 1,000 keys".

**Frontiers.** Every answer names the versions of the sources that it reflects, in `X-Frontier`, as `orders@42
cards@17`. Give one as `min_frontier` to get an answer that is not older, or 409 after `wait` seconds. All tables of one
answer are of one frontier.

**Forms.** Keys come as JSON, or as an Arrow IPC stream with the key's columns by name (or one column of any name, where
the key is one). Answers are Arrow IPC, JSON or Parquet, by `Accept`; without it, JSON for JSON and Arrow for Arrow.

**Values in JSON.** Decimals are strings, dates and timestamps are ISO 8601, binary is base64, lists are arrays; floats
that are no numbers are `"NaN"`, `"Infinity"` and `"-Infinity"`. Keys are written in the same way.

**Missing keys** have nulls, in the order of the request, and `false` in `_found`.
"""

_FACTS = {name: ref("headers", name) for name in ("X-Frontier", "X-Version", "X-Request-Id")}
_FORMS = (JSON, ARROW, PARQUET)


def document(*, has_tokens: bool) -> Json:
    """The document; with tokens, operations need one."""
    found: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "Headwater online tables",
            "version": version("headwater"),
            "summary": "Rows of derived tables by key.",
            "description": _ABOUT,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "fetch", "description": "Rows by key."},
            {"name": "tables", "description": "What there is."},
            {"name": "rows", "description": "Tables whose rows come by this API."},
            {"name": "server", "description": "How the server is."},
            {"name": "murr", "description": "The paths of Murr, for its clients."},
        ],
        "paths": _paths(),
        "components": dict(COMPONENTS),
    }
    if has_tokens:
        scheme = {"type": "http", "scheme": "bearer", "description": "A token of the server's configuration."}
        found["components"]["securitySchemes"] = {"token": scheme}
        found["security"] = [{"token": []}]
    return found


def _operation(tag: str, name: str, summary: str, responses: Json, **more: Any) -> Json:
    return {"operationId": name, "tags": [tag], "summary": summary, "responses": responses, **more}


def _body(content: Json) -> Json:
    return {"required": True, "content": content}


def _answer(about: str, schema: str, forms: tuple[str, ...] = (JSON,), headers: Json | None = None) -> Json:
    content = {form: {"schema": ref("schemas", schema) if form == JSON else BINARY} for form in forms}
    return {"description": about, "content": content, **({"headers": headers} if headers else {})}


def _paths() -> Json:
    return {
        "/v1/fetch": {"post": _fetch_several()},
        "/v1/tables": {"get": _list("tables", "listTables")},
        "/v1/tables/{table}": {
            "parameters": [table_parameter()],
            "get": _describe(),
            "put": _create("rows", "createTable"),
            "delete": _drop("rows", "dropTable"),
        },
        "/v1/tables/{table}/compact": {"parameters": [table_parameter()], "post": _compact("rows", "compactTable")},
        "/v1/tables/{table}/fetch": {"parameters": [table_parameter()], "post": _fetch("fetch", "fetch")},
        "/v1/tables/{table}/rows": {
            "parameters": [table_parameter()],
            "put": _write("rows", "writeRows"),
            "delete": _delete("deleteRows"),
        },
        "/v1/tables/{table}/rows/delete": {"parameters": [table_parameter()], "post": _delete("deleteRowsByPost")},
        "/v1/tables/{table}/schema": {"parameters": [table_parameter()], "get": _schema("tables", "tableSchema")},
        "/v1/tables/{table}/versions": {"parameters": [table_parameter()], "get": _versions()},
        "/api/v1/table": {"get": _list("murr", "murrListTables", murr=True)},
        "/api/v1/table/{table}": {
            "parameters": [table_parameter()],
            "put": _create("murr", "murrCreateTable"),
            "delete": _drop("murr", "murrDropTable"),
        },
        "/api/v1/table/{table}/compact": {"parameters": [table_parameter()], "post": _compact("murr", "murrCompact")},
        "/api/v1/table/{table}/fetch": {"parameters": [table_parameter()], "post": _fetch("murr", "murrFetch")},
        "/api/v1/table/{table}/schema": {"parameters": [table_parameter()], "get": _schema("murr", "murrSchema")},
        "/api/v1/table/{table}/write": {"parameters": [table_parameter()], "put": _write("murr", "murrWrite")},
        **_server_paths(),
    }


def _fetch(tag: str, name: str) -> Json:
    murr = " With keys by column: only the rows that there are, and `_idx`, the position of each in the request."
    answer = _answer(f"Values in the order of the keys.{murr if tag == 'murr' else ''}", "FetchAnswer", _FORMS, _FACTS)
    return _operation(
        tag,
        name,
        "Columns of a table for some keys",
        {"200": answer, **refusals(404, 406, 409, 413, 415)},
        description="Options stand in the query, or in a JSON body, where they win.",
        parameters=FETCH_PARAMETERS,
        requestBody=_body({JSON: {"schema": ref("schemas", "FetchRequest")}, ARROW: {"schema": BINARY}}),
    )


def _fetch_several() -> Json:
    options = [one for one in FETCH_PARAMETERS if one["name"] not in ("columns", "missing")]
    about = 'Tables and columns as JSON, for Arrow bodies: {"spend": ["total"], "risk": null}'
    tables = parameter("tables", about, {"type": "string", "contentMediaType": JSON})
    answer = _answer("Columns `table.column`, all of one frontier.", "SeveralAnswer", _FORMS, _FACTS)
    return _operation(
        "fetch",
        "fetchSeveral",
        "Columns of several tables for the same keys, of one frontier",
        {"200": answer, **refusals(404, 406, 409, 413, 415)},
        parameters=[tables, *options],
        requestBody=_body({JSON: {"schema": ref("schemas", "SeveralRequest")}, ARROW: {"schema": BINARY}}),
    )


def _list(tag: str, name: str, *, murr: bool = False) -> Json:
    schemas: Json = {"type": "object", "additionalProperties": ref("schemas", "MurrSchema")}
    listed: Json = {
        "type": "object",
        "required": ["tables"],
        "properties": {"tables": {"type": "array", "items": ref("schemas", "Table")}},
    }
    done = {
        "description": "All that the token may read.",
        "content": json_content(schemas if murr else listed),
        "headers": {"X-Frontier": ref("headers", "LeastFrontier")},
    }
    return _operation(tag, name, "The tables that there are", {"200": done, **refusals()})


def _describe() -> Json:
    return _operation(
        "tables", "describeTable", "What is known of a table", {"200": _answer("It.", "Table"), **refusals(404)}
    )


def _schema(tag: str, name: str) -> Json:
    done = _answer("Key and columns.", "MurrSchema" if tag == "murr" else "Schema", headers=_FACTS)
    return _operation(tag, name, "The key and the columns of a table", {"200": done, **refusals(404)})


def _versions() -> Json:
    schema: Json = {
        "type": "object",
        "required": ["versions"],
        "properties": {"versions": {"type": "array", "items": ref("schemas", "Version")}},
    }
    done = {"description": "Newest first.", "content": json_content(schema)}
    return _operation("tables", "tableVersions", "The versions that still answer", {"200": done, **refusals(404)})


def _create(tag: str, name: str) -> Json:
    return _operation(
        tag,
        name,
        "Make a table whose rows come by this API",
        {"201": _answer("It was made.", "Table"), **refusals(405, 409, 413, 415)},
        requestBody=_body(json_content(ref("schemas", "NewTable"))),
    )


def _drop(tag: str, name: str) -> Json:
    gone = {"description": "It is gone."}
    return _operation(tag, name, "Delete a table that was made so", {"204": gone, **refusals(404, 405, 409)})


def _compact(tag: str, name: str) -> Json:
    done = _answer("The table as it is now.", "Table", headers=_FACTS)
    return _operation(tag, name, "Let the base take in the overlays now", {"200": done, **refusals(404, 405, 409)})


def _write(tag: str, name: str) -> Json:
    return _operation(
        tag,
        name,
        "Insert rows, or replace those with the same keys",
        {
            "200": _answer("They were written, all of them.", "Written", headers=_FACTS),
            **refusals(404, 405, 409, 413, 415),
        },
        requestBody=_body(
            {JSON: {"schema": ref("schemas", "RowsRequest")}, ARROW: {"schema": BINARY}, PARQUET: {"schema": BINARY}}
        ),
    )


def _delete(name: str) -> Json:
    return _operation(
        "rows",
        name,
        "Delete rows by their keys",
        {"200": _answer("They are gone.", "Written", headers=_FACTS), **refusals(404, 405, 409, 413, 415)},
        requestBody=_body(
            {JSON: {"schema": ref("schemas", "KeysRequest")}, ARROW: {"schema": BINARY}, PARQUET: {"schema": BINARY}}
        ),
    )


def _server_paths() -> Json:
    text: Json = {"text/plain": {"schema": {"type": "string"}}}
    ok = {"description": "It answers.", "content": json_content({"type": "object"})}
    ready = _answer("All required tables are loaded, well and fresh.", "Readiness")
    unready = {**_answer("Some are not.", "Readiness"), "headers": {"Retry-After": {"schema": {"type": "string"}}}}
    openly: list[Any] = []
    metrics = {
        "description": "In the text format of Prometheus, or OpenMetrics by `Accept`.",
        "content": {**text, "application/openmetrics-text": {"schema": {"type": "string"}}},
    }
    page = {"description": "A page.", "content": {"text/html": {"schema": {"type": "string"}}}}
    this = {"description": "This document.", "content": json_content({"type": "object"})}

    def get(name: str, summary: str, responses: Json, *, tag: str = "server", is_open: bool = True) -> Json:
        others = {} if is_open else refusals()
        security: Json = {"security": openly} if is_open else {}
        return {"get": _operation(tag, name, summary, {**responses, **others}, **security)}

    return {
        "/healthz": get("healthz", "Whether the server answers", {"200": ok, **_open_refusals()}),
        "/readyz": get("readyz", "Whether the server is ready", {**_open_refusals(), "200": ready, "503": unready}),
        "/metrics": get("metrics", "What was counted, for Prometheus", {"200": metrics}, is_open=False),
        "/openapi.json": get("openapi", "The description of this API", {"200": this, **_open_refusals()}),
        "/docs": get("docs", "The same for people", {"200": page, **_open_refusals()}),
        "/health": get(
            "murrHealth",
            "Whether the server answers",
            {"200": {"description": "OK", "content": text}, **_open_refusals()},
            tag="murr",
        ),
    }


def _open_refusals() -> Json:
    return {str(status): one for status, one in refusals().items() if status in ("400", "408", "431", "503")}
