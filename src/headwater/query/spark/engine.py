"""Spark: the text goes to Spark as it stands, with the lake's tables under names of their own.

Spark SQL is the dialect of the lake, so this engine needs no plan of ours, and understands all that Spark does. Each
table that the text names becomes a temporary view for the query (of the version that is asked for), and its name in the
text is replaced; a name that the lake does not know is left to Spark's own catalogue. The session has to mean what the
other engines mean: ANSI mode, UTC.

The rows of a query are collected by the driver when they are first read. Larger ones had better be written:
``CREATE TABLE … AS SELECT …`` is computed and written by Spark's tasks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors import (
    Action,
    CancelledError,
    ExpressionError,
    HeadwaterError,
    InputError,
    NotFoundError,
    SetupError,
    UnsupportedError,
)
from headwater.base.schema import normalize_type
from headwater.lake.addressed import FILE, POSITION
from headwater.lake.snapshot import Snapshot
from headwater.lake.spark.types import arrow_schema
from headwater.query.engines.engine import Rows, Running, conformed
from headwater.query.pinned import Pinned, Relations
from headwater.query.sources import Source
from headwater.query.spark.matches import MatchText, match_texts, matched
from headwater.query.spark.references import Reference, columns_named, references, replaced
from headwater.query.table_functions import is_function
from headwater.spark.failures import told
from headwater.spark.meaning import WANTED, is_set
from headwater.sql.fragment import Fragment, Parameters
from headwater.sql.nodes import Refused, Wrong
from headwater.sql.query import Arguments
from headwater.sql.tokens import Token, tokenize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.derived.port import DerivingLake

__all__ = ["SparkEngine"]

_numbers = itertools.count(1)
# What the other engines say of the same thing.
_IN_SHORT = {
    "DIVIDE_BY_ZERO": "division by zero",
    "REMAINDER_BY_ZERO": "division by zero",
    "ARITHMETIC_OVERFLOW": "a number does not fit its type (overflow)",
    "CAST_OVERFLOW": "a number does not fit its type (overflow)",
    "NUMERIC_VALUE_OUT_OF_RANGE": "a number does not fit its type (overflow)",
    "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION": "a number does not fit its type (overflow)",
    "CAST_INVALID_INPUT": "a value cannot be cast to the type asked for",
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": "a subquery that stands for one value gave more than one row",
}
_PROPOSED = 5


class SparkEngine:
    """Queries, computed by Spark."""

    name = "spark"

    def start(self, lake: DerivingLake, fragment: Fragment, relations: Relations) -> Running:
        """Begin a query; Spark's jobs run when the first batch is asked for."""
        query = _Query(lake, fragment, relations)
        tag = f"headwater-{next(_numbers)}"
        session = lake.spark
        schema = query.schema

        def batches() -> Iterator[pa.RecordBatch]:
            session.addTag(tag)
            try:
                yield from query.frame.toArrow().to_batches()
            finally:
                session.removeTag(tag)
                query.close()

        def cancel() -> None:
            session.interruptTag(tag)

        return Running(conformed(batches(), schema, query.failure), cancel, query.close)

    def rows(self, lake: DerivingLake, fragment: Fragment, relations: Relations) -> Rows:
        """The query as a DataFrame, which Spark's own tasks will write."""
        query = _Query(lake, fragment, relations)

        def meaning(error: Exception) -> Exception:
            return query.failure(error) if type(error).__module__.startswith(("pyspark", "py4j")) else error

        return Rows(query.frame, query.close, meaning)

    def schema(self, lake: DerivingLake, fragment: Fragment, relations: Relations) -> pa.Schema:
        query = _Query(lake, fragment, relations)
        try:
            return query.schema
        finally:
            query.close()

    def explain(self, lake: DerivingLake, fragment: Fragment, mode: str) -> str:
        word = mode.upper() if mode.upper() in ("EXTENDED", "FORMATTED", "CODEGEN", "COST") else ""
        query = _Query(lake, Fragment(f"EXPLAIN {word} {fragment.text}", fragment.parameters), {})
        try:
            return str(query.frame.collect()[0][0]).strip() + "\n"
        except Exception as error:  # noqa: BLE001 (told in plain words)
            raise query.failure(error) from None
        finally:
            query.close()

    def named_tables(self, sql: str) -> set[str]:
        return set()

    def native(self, sql: str, tables: Mapping[str, Source]) -> Running:
        raise UnsupportedError.native(self.name)


class _Query:
    """One text on its way to Spark: its views, its DataFrame, and the meaning of its errors."""

    def __init__(
        self, lake: DerivingLake, fragment: Fragment, relations: Relations, pinned: Pinned | None = None
    ) -> None:
        self.lake, self.fragment = lake, fragment
        self.session: SparkSession = lake.spark
        self.pinned = Pinned(lake, relations) if pinned is None else pinned
        self.inner: list[_Query] = []
        self.known = {name.lower(): name for name in lake.catalog.names()}
        self.views: list[str] = []
        self.taken: list[Reference] = []
        self.columns: list[str] = []
        self.shifts: list[tuple[int, int]] = [(0, 0)]
        _check_functions(lake, fragment)
        _check_session(self.session, fragment.text)
        try:
            with fragment.placed():
                text, self.shifts = replaced(fragment.text, self._references(), self._view)
                text, args = _bound(text, self._left(fragment))
                self.frame = self.session.sql(text, args=args) if args else self.session.sql(text)
        except Exception as error:  # noqa: BLE001 (told in plain words)
            self.close()
            raise self.failure(error) from None

    @property
    def schema(self) -> pa.Schema:
        found = arrow_schema(self.frame.schema)
        return pa.schema([f if pa.types.is_null(f.type) else f.with_type(normalize_type(f.type)) for f in found])

    def close(self) -> None:
        """Drop the views."""
        while self.inner:
            self.inner.pop().close()
        while self.views:
            with suppress(Exception):
                self.session.catalog.dropTempView(self.views.pop())

    def _references(self) -> list[Reference]:
        """What stands for tables in the text; a relation with a MATCH_RECOGNIZE behind it is one."""
        text = self.fragment.text
        self.matches = {one.start: one for one in match_texts(text)}
        whole = [Reference(("match",), one.start, one.end, has_alias=True) for one in self.matches.values()]
        plain = [r for r in references(text) if not any(m.start <= r.start < m.end for m in whole)]
        return sorted([*plain, *whole], key=lambda r: r.start)

    def _match_view(self, one: MatchText) -> str:
        head = "" if one.definitions is None else self.fragment.text[slice(*one.definitions)] + " "
        relation = self._part(one.start, one.clause)
        before = () if one.definitions is None else self._part(*one.definitions).parameters
        named = relation.parameters
        given = named if isinstance(named, Mapping) else [*before, *named]
        inner = _Query(self.lake, Fragment(f"{head}SELECT * FROM {relation.text}", given), {}, self.pinned)
        self.inner.append(inner)
        clause = self._part(one.clause, one.end)
        return self._add(matched(inner.frame, clause.text, clause.parameters, name=one.name))

    def _part(self, start: int, end: int) -> Fragment:
        """A part of the text, with the parameters that stand in it."""
        text, given = self.fragment.text, self.fragment.parameters
        tokens = [t for t in tokenize(text) if t.kind in ("parameter", "question")]
        inside = [start <= t.start < end for t in tokens]
        if isinstance(given, Mapping):
            names = {t.text[1:] for t, is_in in zip(tokens, inside, strict=True) if is_in}
            return Fragment(text[start:end], {name: value for name, value in given.items() if name in names})
        if len(given) != len(tokens):
            raise InputError.bad_argument("parameters", len(given), f"{len(tokens)} values, one for each `?`")
        return Fragment(text[start:end], [v for v, is_in in zip(given, inside, strict=True) if is_in])

    def _left(self, fragment: Fragment) -> Parameters:
        """The parameters without those that stood in a reference, whose values its view has."""
        if isinstance(fragment.parameters, Mapping):
            return fragment.parameters
        asked = [t.start for t in tokenize(fragment.text) if t.kind == "question"]
        if len(asked) != len(fragment.parameters):
            return fragment.parameters
        gone = [at for at in asked if any(one.start <= at < one.end for one in self.taken)]
        return [value for at, value in zip(asked, fragment.parameters, strict=True) if at not in gone]

    def _view(self, reference: Reference) -> str | None:
        """The view that stands for a table, or None for one that is not the lake's; errors point at the reference."""
        try:
            name = self._view_of(reference)
            if name is not None:
                self.taken.append(reference)
            return name
        except Refused as refused:
            raise ExpressionError.statement(self.fragment.text, refused.what, reference.start, refused.hint) from None
        except HeadwaterError as error:
            if error.position is None:
                error.placed_at(self.fragment.text, reference.start)
            raise

    def _view_of(self, reference: Reference) -> str | None:
        if reference.start in self.matches and reference.end == self.matches[reference.start].end:
            return self._match_view(self.matches[reference.start])
        if reference.arguments is not None:
            return self._function_view(reference)
        written = reference.name
        name = written if written in self.pinned.given else self.known.get(written.lower())
        if name is None:
            return None
        version, timestamp = self._moment(reference)
        return self._add(self._frame_of(name, version, timestamp))

    def _frame_of(self, name: str, version: int | None, timestamp: datetime | None) -> DataFrame:
        found = self.pinned.table(name, version, timestamp)
        if isinstance(found, Snapshot):
            return self.lake.table(name).pinned_to(found).spark(self.session)
        return self.session.createDataFrame(found.read(found.schema.names, ()).read_all())

    def _function_view(self, reference: Reference) -> str | None:
        name = reference.name.lower()
        if not is_function(name):
            return None
        assert reference.arguments is not None
        found = self.pinned.function(name, _arguments(reference.arguments, self.fragment))
        columns = columns_named(self.fragment.text, found.schema.names)
        return self._add(self.session.createDataFrame(found.read(columns, ()).read_all()))

    def _moment(self, reference: Reference) -> tuple[int | None, datetime | None]:
        if reference.travel is None:
            return None, None
        values = [t for t in reference.value if t.kind != "word"]
        value = _constant(values[0], self.fragment) if values else None
        if reference.travel == "version" and str(value).isdecimal():
            return int(str(value)), None
        if reference.travel == "timestamp" and isinstance(value, str | datetime):
            return None, value if isinstance(value, datetime) else _instant(self.fragment.text, value, reference.start)
        raise ExpressionError.syntax(
            self.fragment.text, "write VERSION AS OF 3 or TIMESTAMP AS OF '2024-01-31'", reference.start
        )

    def _add(self, frame: DataFrame) -> str:
        name = f"headwater_{next(_numbers)}"
        frame.createOrReplaceTempView(name)
        self.columns += [c for c in frame.columns if c not in (FILE, POSITION, *self.columns)]
        self.views.append(name)
        return name

    def failure(self, error: Exception) -> Exception:
        """An error of Spark's, in its own first sentence and at the place in the user's text."""
        try:
            with told():
                raise error
        except HeadwaterError as typed:
            whole = self.fragment.whole or self.fragment.text
            return typed.in_query(whole) if isinstance(typed, ExpressionError) else typed
        except Exception:  # noqa: BLE001 (read below)
            text = self.fragment.text
        if isinstance(error, Wrong):
            return ExpressionError.wrong(text, error.what, error.hint, error.position)
        if isinstance(error, Refused):
            return ExpressionError.refused(text, error.what, error.hint, error.position)
        condition = _asked(error, "getCondition") or ""
        if "OPERATION_CANCELED" in condition or "cancelled" in str(error).lower():
            return CancelledError.query("query")
        message = _sentence(str(error))
        start = self._place(error)
        if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
            name = (_asked(error, "getMessageParameters") or {}).get("relationName", "").replace("`", "")
            made: HeadwaterError = NotFoundError.table(name, sorted(self.known.values()), self.lake.location)
            made.placed_at(text, start)
        elif condition.startswith("UNRESOLVED_COLUMN"):
            given = _asked(error, "getMessageParameters") or {}
            near = [n.replace("`", "").rpartition(".")[2] for n in given.get("proposal", "").split(", ") if n]
            known = self._in_order(near)
            made = NotFoundError.column(given.get("objectName", "").replace("`", ""), known, where=text)
            made.placed_at(text, start)
        elif type(error).__name__ in ("AnalysisException", "ParseException"):
            made = ExpressionError.spark(text, message, start)
        else:
            return ExpressionError.query_failed(self.fragment.whole or text, _IN_SHORT.get(condition, message))
        if self.fragment.whole is not None and made.position is not None:
            made.placed_at(self.fragment.whole, self.fragment.place(made.position))
        return made

    def _in_order(self, near: Sequence[str]) -> list[str]:
        """The columns that Spark proposes, which are the five most alike, as the tables have them."""
        plain = [n for n in near if n not in (FILE, POSITION)]
        if any(n not in self.columns for n in plain):
            return plain
        # Fewer than five are all that the query can see there; of more, the tables' own list tells the rest.
        return [c for c in self.columns if len(near) >= _PROPOSED or c in plain]

    def _place(self, error: Exception) -> int | None:
        """Where in the user's text Spark's error lies."""
        at: int | None = None
        for context in _asked(error, "getQueryContext") or ():
            with suppress(Exception):
                at = int(context.startIndex())
                break
        if at is None and (found := re.search(r"\(line (\d+), pos (\d+)\)", str(error))):
            return None if int(found[1]) > 1 else self._original(int(found[2]))
        return None if at is None else self._original(at)

    def _original(self, at: int) -> int:
        there, here = max(s for s in self.shifts if s[0] <= at)
        return min(here + at - there, len(self.fragment.text))


def _asked(error: Exception, method: str) -> Any:
    found = getattr(error, method, None)
    with suppress(Exception):
        return found() if found is not None else None
    return None


def _sentence(message: str) -> str:
    """Spark's message without its code, state, plan and trace."""
    first = message.strip().split("\n")[0]
    first = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", first)
    first = re.sub(r"\s*SQLSTATE: \w+.*$", "", first)
    return re.sub(r"`headwater_\d+`", "the table", first).rstrip(". ")


def _check_functions(lake: DerivingLake, fragment: Fragment) -> None:
    """Refuse a function in Python, which is this process's and not Spark's;
    one that Spark has too is meant to be Spark's.
    """
    tokens = list(tokenize(fragment.text)) if lake.user_functions else []
    for token, behind in itertools.pairwise(tokens):
        if token.kind in ("word", "name") and behind.text == "(":
            name = str(token.value or token.text)
            if name.lower() in lake.user_functions and not lake.spark.catalog.functionExists(name):
                what = f"{name}() is a function in Python that is registered with the lake, and Spark does not have it"
                hint = (Action("run_on_duckdb"), Action("register_with_spark"))
                raise ExpressionError.wrong(fragment.text, what, hint, token.start)


def _check_session(session: SparkSession, text: str) -> None:
    # Spark would put variables of the environment and its own settings into texts and names.
    plain = {"spark.sql.variable.substitute": "false"} if "${" in text else {}
    for name, wanted in {**WANTED, **plain}.items():
        found = str(session.conf.get(name, ""))
        if not is_set(found, wanted):
            raise SetupError.session_conf(name, found, wanted)


def _arguments(tokens: Sequence[Token], fragment: Fragment) -> Arguments:
    """The arguments of a table function: constants, with ``name =>`` before them or without."""
    found: list[tuple[str | None, object]] = []
    at = 0
    while at < len(tokens):
        name = None
        if [t.text for t in tokens[at + 1 : at + 3]] == ["=", ">"] and tokens[at].kind in ("word", "name"):
            name, at = str(tokens[at].value).lower(), at + 3
        if at >= len(tokens):
            raise ExpressionError.syntax(fragment.text, "a constant is expected here", tokens[-1].end)
        found.append((name, _constant(tokens[at], fragment)))
        at += 1
        if at < len(tokens) and tokens[at].text != ",":
            raise ExpressionError.syntax(fragment.text, "a comma is expected here", tokens[at].start)
        at += 1
    return tuple(found)


def _constant(token: Token, fragment: Fragment) -> object:
    if token.kind == "number":
        return int(token.text) if token.text.isdecimal() else token.text
    if token.kind == "text":
        return token.value
    if token.kind == "word" and token.word in ("TRUE", "FALSE", "NULL"):
        return {"TRUE": True, "FALSE": False, "NULL": None}[token.word]
    if token.kind == "parameter" and isinstance(fragment.parameters, Mapping):
        return fragment.parameters.get(token.text[1:])
    if token.kind == "question" and not isinstance(fragment.parameters, Mapping):
        before = sum(t.kind == "question" for t in tokenize(fragment.text[: token.start]))
        return fragment.parameters[before]
    raise ExpressionError.syntax(fragment.text, "a constant is expected here", token.start)


def _instant(text: str, value: str, position: int) -> datetime:
    from datetime import UTC

    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise ExpressionError.syntax(text, f"`{value}` is no timestamp", position) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _bound(text: str, parameters: Mapping[str, object] | Sequence[object]) -> tuple[str, Any]:
    """The parameters as Spark takes them, those only that are still in the text."""
    if not parameters:
        return text, None
    tokens = [t for t in tokenize(text) if t.kind in ("parameter", "question")]
    if not isinstance(parameters, Mapping) and len(tokens) != len(parameters):
        raise InputError.bad_argument("parameters", len(parameters), f"{len(tokens)} values, one for each `?`")
    named: dict[str, object] = {}
    numbered: list[object] = []
    out, at = [], 0
    for number, token in enumerate(tokens):
        value = parameters[token.text[1:]] if isinstance(parameters, Mapping) else parameters[number]
        if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, datetime) and value.tzinfo is None:
            # Spark would take it for an instant. Its ISO form holds nothing but digits and marks.
            out += [text[at : token.start], f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"]
            at = token.end
        elif isinstance(value, list | tuple):
            # One parameter for each element, so that they meet in one type as the elements of array() do.
            names = [
                f":{token.text[1:]}__{at_}" if isinstance(parameters, Mapping) else "?" for at_ in range(len(value))
            ]
            out += [text[at : token.start], f"array({', '.join(names)})"]
            at = token.end
            named |= {name[1:]: item for name, item in zip(names, value, strict=True) if name != "?"}
            numbered += [item for name, item in zip(names, value, strict=True) if name == "?"]
        elif isinstance(parameters, Mapping):
            named[token.text[1:]] = value
        else:
            numbered.append(value)
    return "".join([*out, text[at:]]), numbered or named
