"""Hints that work: each form of each action is given to the parser that a user would give it to."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import shlex
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.base.errors import SURFACES, Action, ConstraintError, HeadwaterError, InputError, SchemaError, Surface
from headwater.base.errors.action import composed
from headwater.base.errors.phrases import PHRASES
from headwater.base.kinds import VIEW, KindWords
from headwater.cli._main import _add_common, _Parser
from headwater.cli._verbs import load_verb
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.circuit.stream import Stream as CircuitStream
from headwater.incremental.store import Store
from headwater.incremental.views import View
from headwater.incremental.zset import ZSet
from headwater.lake.merge import Merge
from headwater.lake.table import Table
from headwater.query.result import Result
from headwater.query.run import run
from headwater.spark.failures import carried, told
from headwater.sql.statements import read
from headwater.timeseries.stream import Stream

import_module("headwater.query.statements")  # which registers how they run

SOURCE = Path(hw.__file__).parent
# A value for each argument that an action may have.
SAMPLES: dict[str, object] = {
    "column": "amount",
    "constraint": "positive",
    "intro": "define it again",
    "kind": VIEW,
    "lake": ".",
    "name": "spend",
    "names": "AZURE_STORAGE_ACCOUNT_NAME",
    "property": "delta.appendOnly",
    "query": "SELECT 1 AS a",
    "reader": "big",
    "setting": "spark.sql.ansi.enabled",
    "statement": "DROP TABLE",
    "table": "sales.orders",
    "tail": ", and so on",
    "type": "BIGINT",
    "value": "false",
    "version": 3,
    "when": "if so, ",
    "which": "an earlier version",
}
# What makes a whole statement of the beginning, or of the end, of one.
BEGINNINGS = {
    "CREATE TABLE IF NOT EXISTS": " t (a INT)",
    "CREATE OR REPLACE TABLE": " t (a INT)",
    "CREATE OR REPLACE MATERIALIZED VIEW": " v AS SELECT 1 AS a",
}
# Who has the methods and the arguments that hints name without saying whose they are.
OWNERS = (hw.Lake, Table, View, Result, Merge, Stream, Circuit, CircuitStream, ZSet)


def forms(surface: Surface) -> Iterator[tuple[str, str]]:
    for verb, phrase in PHRASES.items():
        yield from ((verb, form) for form in phrase.forms(surface, SAMPLES))


def is_python(form: str) -> bool:
    return re.match(r"[a-z_.]+(=|\(|$)", form) is not None


def of_kind(surface: Surface, *, python: bool) -> list[Any]:
    return [pytest.param(form, id=f"{verb}: {form}") for verb, form in forms(surface) if is_python(form) is python]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("verb", PHRASES)
def test_each_action_is_said_or_says_why_not(verb: str, surface: Surface) -> None:
    phrase = PHRASES[verb]
    said = phrase.render(surface, SAMPLES)
    if said is None:
        assert phrase.why
        return
    prose = said
    for form in phrase.forms(surface, SAMPLES):
        prose = prose.replace(form, "")
    assert said.strip() == said and not re.search("[«»{}]", prose)
    assert not said.endswith((".", ";", ","))
    assert phrase.slots() <= set(SAMPLES)


def test_what_nobody_knows_is_left_open() -> None:
    widen = Action("widen_column", column="amount")
    assert widen.forms("sql") == ["ALTER TABLE … ALTER COLUMN amount TYPE …"]
    assert Action("build").forms("python") == ["lake.view(…).refresh()"]


@cache
def parameters_of_owners() -> set[str]:
    members = [m for owner in OWNERS for _, m in inspect.getmembers(owner, callable)] + [hw.connect]
    found: set[str] = set()
    for member in members:
        try:
            found |= set(inspect.signature(member).parameters)
        except (TypeError, ValueError):  # of C
            continue
    return found | set(inspect.signature(Store).parameters)


@pytest.mark.parametrize("form", [p for s in SURFACES for p in of_kind(s, python=True)])
def test_python_compiles_and_names_what_there_is(form: str) -> None:
    text = form.replace("…", "...")
    if re.match(r"[a-z_]+=", text):  # an argument
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        assert {keyword.arg for keyword in call.keywords} <= parameters_of_owners()
        return
    tree = ast.parse(text, mode="eval")
    compile(tree, "hint", "eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value
            if isinstance(owner, ast.Name) and owner.id in ("spark", "pyarrow"):
                continue
            if isinstance(owner, ast.Name) and owner.id in ("lake", "hw", "t"):
                assert hasattr({"lake": hw.Lake, "hw": hw, "t": Table}[owner.id], node.attr), node.attr
            elif isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute):
                made = {"view": View, "table": Table}[owner.func.attr]
                assert hasattr(made, node.attr), node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert any(hasattr(owner, node.func.id) for owner in OWNERS), node.func.id
        if isinstance(node, ast.Call):
            assert {k.arg for k in node.keywords} <= parameters_of_owners()


def whole(sql: str) -> str:
    sql = f"CREATE MATERIALIZED VIEW v {sql} AS SELECT 1 AS a" if sql.startswith("TBLPROPERTIES") else sql
    return sql + BEGINNINGS.get(sql, "")


@pytest.mark.parametrize(
    "form",
    [p for s in ("sql", "cli-sql") for p in of_kind(s, python=False) if not p.values[0].startswith("--")],
)
def test_sql_is_read(form: str) -> None:
    if form.startswith("headwater "):
        accepted(form)
        return
    statement = read(whole(form))
    assert run.dispatch(type(statement)) is not run.dispatch(object), "and somebody runs it"


def accepted(command: str) -> None:
    """Raise if the command line does not take it; SQL in it is read as well."""
    program, verb, *words = shlex.split(command)
    assert program == "headwater"
    parser = _Parser(prog=verb, add_help=False, allow_abbrev=False)
    load_verb(verb).configure(parser)
    _add_common(parser)
    arguments = parser.parse_args(words)
    if getattr(arguments, "command", None):
        read(whole(arguments.command))


@pytest.mark.parametrize("form", [p for p in of_kind("cli-sql", python=False) if p.values[0].startswith("--")])
def test_options_are_accepted(form: str) -> None:
    accepted(f"headwater sql . {form}")


@pytest.mark.parametrize("form", of_kind("cli", python=False))
def test_commands_are_accepted(form: str) -> None:
    accepted(form)


def test_a_wrong_form_is_found() -> None:
    with pytest.raises(HeadwaterError):
        accepted("headwater refresh . spend --entirely")
    with pytest.raises(HeadwaterError):
        read(whole("REFRESH MATERIALISED VIEW spend"))
    with pytest.raises(AssertionError):
        test_python_compiles_and_names_what_there_is("lake.renew('spend')")
    with pytest.raises(AssertionError):
        test_python_compiles_and_names_what_there_is("ask=True")


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def texts_in(file: Path) -> Iterator[tuple[int, str]]:
    """The texts in a source file that are no docstrings."""
    tree = parsed(file)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


# Rooms that are reached from several surfaces; streams and circuits are Python's alone.
SHARED = ("base", "sql", "lake", "query", "derived", "incremental/views", "incremental/planning")


def test_no_other_text_says_how_to_do_something_in_python() -> None:
    calls = re.compile(r"\b(lake|hw)\.[a-z_]+|(engine|dialect|parameters|schema_mode|policy|cascade)=[\"{\[TF]")
    found = [
        f"{file.relative_to(SOURCE)}:{line}: {text}"
        for room in SHARED
        for file in sorted((SOURCE / room).rglob("*.py"))
        if file.name != "phrases.py"
        for line, text in texts_in(file)
        if " " in text and calls.search(text)
    ]
    assert found == []


def test_each_action_is_used_by_some_error() -> None:
    used: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in PHRASES:
                used |= set() if file.name == "phrases.py" else {node.value}
    assert set(PHRASES) - used == set()


# -- errors with actions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("surface", "hint"),
    [
        ("python", "build it: lake.view('spend').refresh()"),
        ("sql", "build it: REFRESH MATERIALIZED VIEW spend"),
        ("cli-sql", "build it: REFRESH MATERIALIZED VIEW spend"),
        ("cli", "build it: headwater refresh LAKE spend"),
    ],
)
def test_one_error_on_each_surface(surface: Surface, hint: str) -> None:
    error = InputError.not_built("spend", 0, "/data/spend").on(surface)
    assert error.hint == hint and str(error).endswith(f"  hint: {hint}") and error.as_dict()["hint"] == hint
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.surface, copy.actions, str(copy)) == (surface, error.actions, str(error))
    assert copy.on("python").hint == "build it: lake.view('spend').refresh()"
    assert error.placed_at("SELECT * FROM spend", 14).hint == hint


def test_a_surface_fills_what_the_error_does_not_know() -> None:
    error = ConstraintError.check("positive", "amount > 0", 1, "/data/orders")
    assert error.on("sql").hint == (
        "nothing was written; mend the rows, or ALTER TABLE … DROP CONSTRAINT positive first"
    )
    assert "ALTER TABLE orders DROP CONSTRAINT" in str(error.on("sql", table="orders").hint)
    assert error.on("cli", lake="'my lake'").hint == (
        "nothing was written; mend the rows, or headwater sql 'my lake' -c "
        '"ALTER TABLE orders DROP CONSTRAINT positive" first'
    )


def test_names_are_quoted_where_they_have_to_be() -> None:
    error = SchemaError.type_clash("line `item`", "string", "int").on("sql", table="sales.my orders")
    assert "ALTER TABLE sales.`my orders` ALTER COLUMN `line ``item``` TYPE …" in str(error.hint)
    nested = SchemaError.type_clash("lines.item", "string", "int").on("sql", table="orders")
    assert "ALTER COLUMN … TYPE …" in str(nested.hint), "a field inside a struct cannot be changed alone"
    command = error.on("cli").actions[0].forms("cli", {"table": "sales.my orders", "type": "BIGINT"})
    accepted(command[0])


def test_another_kind_has_its_own_words() -> None:
    index = KindWords("index", "online index", "online indexes", "SEARCH INDEX", "SEARCH INDEXES")
    said = [
        InputError.is_derived("ix", index, "UPDATE"),
        InputError.not_derived("ix", index, "here"),
        InputError.derived_cycle(["ix", "ix"], index),
        InputError.is_read("notes", ["ix", "iy"], "drop()", index),
        InputError.not_built("ix", 0, "here", index),
    ]
    assert "`ix` is an online index: UPDATE cannot change it" in str(said[0])
    assert "lake.index('ix').refresh()" in str(said[0])
    assert "DROP SEARCH INDEX ix" in str(said[0].on("sql"))
    assert "is a table, and not an online index" in str(said[1])
    assert "give the online index another name" in str(said[1])
    assert "the online index `ix` would read itself" in str(said[2])
    assert "is read by the online indexes `ix`, `iy`" in str(said[3])
    assert "REFRESH SEARCH INDEX ix" in str(said[4].on("sql"))


def test_parts_are_joined() -> None:
    one, other = Action("read_dicts"), Action("read_arrow")
    assert composed(["mend it", one], "python") == "mend it, or read the rows with to_dicts()"
    assert composed([one, other, "that is all"], "python") == (
        "read the rows with to_dicts(), or read the rows with to_arrow(); that is all"
    )
    assert composed(["mend it", one, other], "python") == (
        "mend it, read the rows with to_dicts(), or read the rows with to_arrow()"
    )
    assert composed(["did you mean `that`?", one], "python") == "did you mean `that`? Or read the rows with to_dicts()"
    assert composed([one], "cli") is None
    assert composed(["mend it", one], "cli") == "mend it"


def test_an_action_is_a_value() -> None:
    action = Action("build", name="spend", kind=VIEW)
    assert action == Action("build", kind=VIEW, name="spend") and len({action, Action("build", name="spend")}) == 2
    assert Action.from_dict(action.as_dict()) == action
    assert Action("build", name=None) == Action("build")
    with pytest.raises(KeyError):
        Action("destroy")
    with pytest.raises(ValueError, match="no such arguments"):
        Action.from_dict({"verb": "build", "also": False, "given": {"colour": "red"}})


def test_a_hint_can_be_set_as_text() -> None:
    error = InputError.not_built("spend", 0, "here")
    error.hint = "do nothing"
    assert error.hint == "do nothing" and error.actions == ()
    error.hint = None
    assert "hint" not in str(error)


def test_actions_come_back_from_a_task() -> None:
    with pytest.raises(InputError) as caught, told(), carried():
        raise InputError.not_built("spend", 0, "here")
    assert caught.value.actions == InputError.not_built("spend", 0, "here").actions
    assert caught.value.on("sql").hint == "build it: REFRESH MATERIALIZED VIEW spend"
