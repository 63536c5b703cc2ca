"""Spans where the package `opentelemetry` is there: one for a run, below it one for each node and test; without it nothing.

The API is a third party's, and is not among our dependencies: a package of its shape stands for it, as far as it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.test_project import CHAIN, project

from headwater.pipeline import tracing
from headwater.testing.faults import FaultPlan, InjectedError

API = """
from contextlib import contextmanager
from contextvars import ContextVar

current = ContextVar("current", default=None)
ended = []


class Span:
    def __init__(self, name, parent, attributes):
        self.name, self.parent, self.attributes, self.error = name, parent, dict(attributes), None

    def set_attribute(self, key, value):
        self.attributes[key] = value


class Tracer:
    def __init__(self, name):
        self.name = name

    @contextmanager
    def start_as_current_span(self, name, attributes=None):
        span = Span(name, current.get(), attributes or {})
        token = current.set(span)
        try:
            yield span
        except Exception as error:
            span.error = error
            raise
        finally:
            current.reset(token)
            ended.append(span)


def get_tracer(name):
    return Tracer(name)
"""
TESTED = {**CHAIN, "views/a.sql": "-- tests: [{unique: id}]\n" + CHAIN["views/a.sql"]}


@pytest.fixture
def fresh() -> Iterator[None]:
    """Looks for the package again, and forgets what was found."""
    names = [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]
    kept = {name: sys.modules.pop(name) for name in names}
    tracing._tracer.cache_clear()
    yield
    tracing._tracer.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        del sys.modules[name]
    sys.modules.update(kept)


@pytest.fixture
def spans(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    package = tmp_path / "packages" / "opentelemetry"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "trace.py").write_text(API)
    monkeypatch.syspath_prepend(str(package.parent))
    from opentelemetry import trace  # type: ignore[import-not-found]

    found: list[Any] = trace.ended
    return found


def test_a_run_is_a_span_with_one_below_it_for_each_node_and_test(tmp_path: Path, spans: list[Any]) -> None:
    run = project(tmp_path, TESTED).refresh(workers=2)
    root = spans[-1]
    assert (root.name, root.parent) == ("refresh", None)
    assert root.attributes == {
        "headwater.project": "shop",
        "headwater.run": run.id,
        "headwater.ok": True,
        "headwater.nodes": 4,
    }
    below = spans[:-1]
    assert all(one.parent is root and one.attributes["headwater.run"] == run.id for one in below)
    nodes = {one.attributes["headwater.node"]: one.attributes["headwater.kind"] for one in below if one.name == "node"}
    assert nodes == {"a": "view", "b": "view", "c": "view", "d": "online"}
    tests = [one.attributes for one in below if one.name == "test"]
    assert tests == [{"headwater.test": "unique_a_id", "headwater.node": "a", "headwater.run": run.id}]


def test_the_span_of_a_node_that_fails_has_its_error(tmp_path: Path, spans: list[Any]) -> None:
    made = project(tmp_path, {**CHAIN, "headwater.yaml": "name: shop\ndefaults: {retries: 0}\n"})
    with FaultPlan().raise_at("view.refresh.begin"):
        run = made.refresh()
    errors = {one.attributes.get("headwater.node"): one.error for one in spans}
    assert list(run.failed) == ["a"] and isinstance(errors["a"], InjectedError)
    assert spans[-1].name == "refresh" and spans[-1].attributes["headwater.ok"] is False and spans[-1].error is None


def test_without_the_package_nothing_is_done(tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [one for one in sys.path if not (Path(one) / "opentelemetry").exists()])
    with tracing.span("refresh", project="shop") as add:
        add(ok=True)
    assert "opentelemetry" not in sys.modules
    (tmp_path / "opentelemetry").mkdir()  # a folder of that name, without the API
    monkeypatch.syspath_prepend(str(tmp_path))
    tracing._tracer.cache_clear()
    with tracing.span("refresh", project="shop") as add:
        add(ok=True)
