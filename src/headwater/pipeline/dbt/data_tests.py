"""The data tests of a dbt project, as a project here declares them.

Generic tests (``unique``, ``not_null``, ``accepted_values``, ``relationships``) and the queries below ``tests/`` are
taken with ``severity``, ``where`` and ``name``. An option that decides when a test fails and is not known here
(``error_if``, ``fail_calc``) would make another test of it, so such a test is not taken; an option that only says what
dbt does beside it (``tags``, ``store_failures``) is left out, with a note.

A test may also read what is downstream of its node, which dbt runs after everything. Here whatever reads a node waits
for its tests, so such a test would wait for itself: `without_waiting` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.pipeline.checks.declaration import waits_through
from headwater.pipeline.dbt.jinja import NotTaken, rendered

__all__ = ["Names", "TakenTest", "generic_test", "parts", "singular_test", "without_waiting"]

_COLUMN = re.compile(r"[A-Za-z_]\w*")
_SEVERITIES = ("error", "warn")
_OWN: Mapping[str, tuple[str, ...]] = {
    "not_null": (),
    "unique": (),
    "accepted_values": ("values",),
    "relationships": ("to", "field"),
}
_DECISIVE = ("error_if", "warn_if", "fail_calc")
"""Options that decide whether a test fails."""


@dataclass(frozen=True)
class Names:
    """What dbt's names mean in the lake; both functions raise `NotTaken` for what is not there."""

    ref: Callable[[str], str]
    source: Callable[[str, str], str]
    variables: Mapping[str, Any]

    def rendered(self, text: str) -> tuple[str, dict[str, Any], tuple[str, ...]]:
        """A text without its Jinja, what it configures, and what it reads."""
        found = rendered(text, self.ref, self.source, self.variables)
        return found.sql, dict(found.config), tuple(read.replace("`", "") for read in found.reads)


@dataclass(frozen=True)
class TakenTest:
    """A data test of a node."""

    node: str
    written: Mapping[str, Any]
    """As it is written under ``tests:``."""
    reads: tuple[str, ...]
    """Every node that it reads, its own too."""
    shown: str
    """The test in the report."""
    notes: tuple[str, ...] = ()
    """Settings of it that are not taken."""


def generic_test(test: Any, node: str, column: str | None, shown: str, names: Names) -> TakenTest:
    """A test of a model, a source or one of their columns; raises `NotTaken` where it would be another one here."""
    kind, options = parts(test)
    if kind not in _OWN:
        raise NotTaken("write it as a query")
    column = options.pop("column_name", column)
    if not isinstance(column, str) or not _COLUMN.fullmatch(column):
        raise NotTaken(f"`{column}` is no column; write it as a query")
    taken, more = _settings(options, _OWN[kind], names)
    reads = [node]
    if kind == "accepted_values":
        taken["values"] = _values(options.get("values"), options.get("quote"))
        more.discard("quote")
    if kind == "relationships":
        taken["to"] = _relation(options.get("to"), names)
        taken["field"] = options.get("field")
        if not isinstance(taken["field"], str) or not _COLUMN.fullmatch(taken["field"]):
            raise NotTaken(f"its `field` is {taken['field']!r}, which is no column")
        reads.append(taken["to"])
    written = {"column": column, **taken} if taken else column
    return TakenTest(node, {kind: written}, tuple(reads), shown, tuple(sorted(more)))


def singular_test(
    text: str, name: str, described: Mapping[str, Any], shown: str, names: Names, upstream: Callable[[str], set[str]]
) -> TakenTest:
    """A query below ``tests/`` that has to give no rows: a test of the last of the nodes that it reads."""
    query, config, reads = names.rendered(text)
    if not reads:
        raise NotTaken("it reads no model and no source")
    # The node that is refreshed last of them: the others are there by then.
    node = max(reads, key=lambda one: len(upstream(one) & set(reads)))
    given = {**{k: v for k, v in described.items() if k not in ("name", "config")}, **_mapping(described.get("config"))}
    if "where" in given or "where" in config:
        raise NotTaken("its `where`: write the condition into the query")
    taken, more = _settings({**given, **config}, (), names)
    written = {"query": query.strip().rstrip(";").rstrip(), **taken, "name": name}
    return TakenTest(node, {"sql": written}, tuple(dict.fromkeys((node, *reads))), shown, tuple(sorted(more)))


def without_waiting(
    tests: Iterable[TakenTest], reads: Callable[[str], Sequence[str]]
) -> tuple[list[TakenTest], list[tuple[TakenTest, str]]]:
    """The tests that can be evaluated before what reads their nodes, and the others, each with the reason."""
    taken: list[TakenTest] = []
    lost = []
    for one in tests:
        ring = _ring([*taken, one], reads)
        if ring is None:
            taken.append(one)
        else:
            lost.append((one, f"`{ring}` is refreshed after the tests of `{one.node}`: make it a test of `{ring}`"))
    return taken, lost


def _ring(tests: Sequence[TakenTest], reads: Callable[[str], Sequence[str]]) -> str | None:
    """Through which node one of some tests waits for itself."""

    def tests_read(node: str) -> list[str]:
        return [read for one in tests if one.node == node for read in one.reads]

    found = (waits_through(one.node, one.reads, reads, tests_read) for one in tests)
    return next((name for name in found if name is not None), None)


def parts(test: Any) -> tuple[str, dict[str, Any]]:
    """The kind of a test and its options, from any of the ways to write it."""
    if isinstance(test, str):
        return test, {}
    if not isinstance(test, dict) or not test:
        raise NotTaken("it is neither a name nor a mapping")
    if "test_name" in test:
        kind, options = str(test["test_name"]), {k: v for k, v in test.items() if k != "test_name"}
    elif len(test) == 1:
        ((kind, given),) = test.items()
        if given is not None and not isinstance(given, dict):
            raise NotTaken(f"its options are {given!r}")
        options = dict(given or {})
    else:  # settings may stand beside the name of the test
        kind = next((key for key in test if key in _OWN), str(next(iter(test))))
        options = {**_mapping(test[kind]), **{k: v for k, v in test.items() if k != kind}}
    arguments, config = options.pop("arguments", None), options.pop("config", None)
    return kind, {**_mapping(config), **_mapping(arguments), **options}


def _settings(options: Mapping[str, Any], own: Sequence[str], names: Names) -> tuple[dict[str, Any], set[str]]:
    """The settings that are known here, and the names of the others."""
    taken: dict[str, Any] = {}
    if options.get("enabled") is False:
        raise NotTaken("it is not enabled")
    for key in _DECISIVE:
        if options.get(key) is not None:
            raise NotTaken(f"its `{key}: {options[key]}` decides when it fails, and is not known here")
    severity = options.get("severity")
    if severity is not None:
        if str(severity).lower() not in _SEVERITIES:
            raise NotTaken(f"its severity is {severity!r}")
        if str(severity).lower() == "warn":
            taken["severity"] = "warn"
    if options.get("where") is not None:
        taken["where"], _, reads = names.rendered(str(options["where"]))
        if reads:
            raise NotTaken("its `where` reads another node; write it as a query")
    if options.get("name") is not None:
        taken["name"] = str(options["name"])
    known = {*own, "severity", "where", "name", "enabled", *_DECISIVE}
    return taken, {key for key, value in options.items() if key not in known and value not in (None, "", [], {})}


def _values(found: Any, quote: Any) -> list[Any]:
    plain = isinstance(found, list) and found and all(isinstance(one, str | int | float) for one in found)
    if not plain:
        raise NotTaken(f"its values are {found!r}")
    if quote is False and any(isinstance(one, str) for one in found):
        raise NotTaken("its values are expressions (`quote: false`); write it as a query")
    return list(found)


def _relation(found: Any, names: Names) -> str:
    text = str(found).strip()
    try:
        _, _, reads = names.rendered(text if text.startswith("{{") else f"{{{{ {text} }}}}")
    except NotTaken as why:  # the line is that of this value, which has one
        raise NotTaken(str(why).removeprefix("line 1: ")) from None
    if len(reads) != 1:
        raise NotTaken(f"its `to` is {found!r}")
    return reads[0]


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}
