"""The OpenAPI document: it is complete, the page shows it offline, and the server keeps to it whatever is asked."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.serving.server.running import RunningServer, running

from headwater.base.errors import HeadwaterError
from headwater.serving.server.app import ROUTES
from headwater.serving.server.openapi import document

JSON = "application/json"
TABLE = {"name": "table", "in": "path", "required": True}


def test_every_route_is_described() -> None:
    paths = document(has_tokens=False)["paths"]
    methods = {"get", "put", "post", "delete"}
    described = {path: {method.upper() for method in found if method in methods} for path, found in paths.items()}
    assert described == {path: set(handlers) for path, handlers in ROUTES.items()}


def test_names_of_operations_are_unique() -> None:
    paths = document(has_tokens=True)["paths"]
    names = [one["operationId"] for path in paths.values() for one in path.values() if isinstance(one, dict)]
    assert len(names) == len(set(names))


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)


def test_references_lead_somewhere() -> None:
    found = document(has_tokens=True)
    for reference in set(references(found)):
        place: Any = found
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


def test_tokens_are_asked_for_where_there_are_some() -> None:
    assert "security" not in document(has_tokens=False)
    found = document(has_tokens=True)
    assert found["security"] == [{"token": []}]
    assert found["paths"]["/healthz"]["get"]["security"] == []
    assert "security" not in found["paths"]["/v1/tables"]["get"]


def test_the_page_loads_nothing_from_elsewhere(server: RunningServer) -> None:
    page = server.ask("GET", "/docs")
    text = page.body.decode()
    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", text)
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "innerHTML" not in text


def test_the_page_runs(server: RunningServer) -> None:
    """A browser is not at hand everywhere; where node is, the script is at least read."""
    text = server.ask("GET", "/docs").body.decode()
    script = text.partition("<script>")[2].partition("</script>")[0]
    try:
        done = subprocess.run(["node", "--check", "-"], input=script, text=True, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("node is not installed")
    assert done.returncode == 0, done.stderr


# -- everything that the document allows -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose tables are made and written by whoever asks."""
    folder = tmp_path_factory.mktemp("pushed")
    config = folder / "serve.yaml"
    config.write_text("server: {port: 0, data_dir: data, limits: {max_wait_s: 0.05}}\n")
    with running([sys.executable, "-m", "headwater.cli", "serve", str(config), "--json"]) as server:
        for name in ("spend", "risk"):
            body = b'{"key": "id", "columns": {"id": "int64", "total": "float32", "name": "utf8"}}'
            assert server.ask("PUT", f"/v1/tables/{name}", body, content_type=JSON).status == 201
            rows = b'[{"id": 1, "total": 0.5, "name": "a"}, {"id": 2}]'
            assert server.ask("PUT", f"/v1/tables/{name}/rows", rows, content_type=JSON).status == 200
        yield server


@pytest.mark.long
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_nothing_that_is_asked_makes_the_server_fail(pushed: RunningServer, mode: str) -> None:
    """schemathesis makes requests that fit the document, and others that do not, and looks at each answer."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis.errors import Unsatisfiable
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    raw = document(has_tokens=False)
    # Most requests are about tables that there are.
    name = raw["components"]["parameters"]["table"]["schema"]
    tables = {"anyOf": [{"enum": ["spend", "risk", "fresh"]}, name]}
    raw["components"] = {**raw["components"], "parameters": {"table": {**TABLE, "schema": tables}}}
    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
        response_headers_conformance,
    ]
    asked = 0
    for result in schemathesis.openapi.from_dict(raw).get_all_operations():
        operation = result.ok()  # type: ignore[union-attr]

        @settings(
            max_examples=int(os.environ.get("HEADWATER_TEST_EXAMPLES", "20")),
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
        def ask(case: Any) -> None:
            nonlocal asked
            asked += 1
            response = case.call(base_url=pushed.url, timeout=60)
            case.validate_response(response, checks=checks)

        with contextlib.suppress(Unsatisfiable):  # nothing can be wrong about a request without a parameter
            ask()
    assert asked > 100
    assert pushed.ask("GET", "/readyz").status == 200


def test_errors_have_the_form_that_is_described() -> None:
    properties = document(has_tokens=False)["components"]["schemas"]["Error"]["properties"]
    assert set(HeadwaterError("E1001", "x").as_dict()) <= set(properties)
