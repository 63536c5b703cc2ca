"""Spark's analyzer, asked what a query means.

The problem: Spark SQL has hundreds of functions and its own rules of names and types; only Spark knows all of them. The
idea: tables without rows are registered under the names that the query uses, Spark analyses the query over them, and
the analyzed plan leaves the JVM as JSON, once. What is made of it (`headwater.sql.analyzed`) needs no JVM.

This is the one place that speaks to private classes of Spark's analyzer: ``sessionState``, its parser, ``executePlan``
and the trees (`analyzer_tree`). Spark 4.2 and 4.3 have all of them alike.

Invariants:
1. The user's session is not touched: a session beside it holds the views and the names of functions for the time of one
   call, with ANSI mode and UTC.
2. Nothing is run: a statement that is no query is analysed and not executed.
3. An error of Spark's is one of ours, with the place in the text and without a Java trace.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from headwater.base.errors import Action, ExpressionError, HeadwaterError, NotFoundError, UnsupportedError
from headwater.base.schema import Schema
from headwater.spark.analyzer_tree import Tree, bare, completed, end_of, is_tree, short

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FORMAT", "analyzed"]

FORMAT = 1
"""The version of the JSON: ``{"format": 1, "spark": "4.2.0", "plan": [...]}``."""

_CONF = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.variable.substitute": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
}
_PREFIX = "headwater_view_"
_lock = threading.Lock()
_beside: WeakKeyDictionary[SparkSession, Any] = WeakKeyDictionary()
# Tables without rows, by their names and schemas: to make one costs Spark more than to analyse a short query, and the
# same tables are asked about again.
_empty: WeakKeyDictionary[SparkSession, dict[tuple[str, str], Any]] = WeakKeyDictionary()
_MOST_EMPTY = 100


def analyzed(
    spark: SparkSession,
    sql: str,
    schemas: Mapping[str, pa.Schema],
    functions: Mapping[str, pa.DataType] | None = None,
) -> str:
    """Spark's analyzed plan of a query, as JSON.

    Parameters
    ----------
    spark
        A session with a JVM in reach: classic PySpark, not Spark Connect.
    sql
        One query.
    schemas
        The tables it may name, by name as it writes them (without case): ``orders``, ``sales.orders``.
    functions
        The Python functions it may call, and what they return. Spark is told that much, and never calls them.

    Raises
    ------
    ExpressionError
        Spark does not take the text (E1310).
    NotFoundError
        It names a table (E1101) or a column (E1002) that is not there.
    UnsupportedError
        The session is one of Spark Connect (E3003).

    Examples
    --------
    >>> import headwater as hw
    >>> json_text = analyzed(hw.spark(), "SELECT id FROM t", {"t": pa.schema([("id", pa.int64())])})  # doctest: +SKIP
    """
    jvm_session = getattr(spark, "_jsparkSession", None)
    if jvm_session is None:
        raise UnsupportedError.operation(
            "Spark's analyzer cannot be asked over Spark Connect",
            "its plans stay in the server's JVM",
            (Action("classic_session"), Action("own_reader")),
        )
    with _lock:
        question = _Question(spark, jvm_session, sql, schemas, functions or {})
        try:
            with question.active():
                return question.answer()
        except HeadwaterError:
            raise
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark", "py4j")):
                raise
            raise question.failure(error) from None
        finally:
            question.close()


class _Question:
    """One query on its way through the analyzer: its views, its text with their names,
    and the meaning of its errors.
    """

    def __init__(
        self,
        spark: SparkSession,
        jvm_session: Any,
        sql: str,
        schemas: Mapping[str, pa.Schema],
        functions: Mapping[str, pa.DataType],
    ) -> None:
        self.sql, self.schemas, self.functions = sql, schemas, functions
        self.jvm: Any = spark._jvm
        if spark not in _beside:
            made = jvm_session.newSession()
            for name, value in _CONF.items():
                made.conf().set(name, value)
            _beside[spark] = made
        self.session = _beside[spark]
        self.empty = _empty.setdefault(spark, {})
        self.state = self.session.sessionState()
        self.version = str(spark.version)
        self.views: dict[str, str] = {}
        # (place in the text that Spark reads, place in the user's), in order.
        self.shifts: list[tuple[int, int]] = [(0, 0)]

    def answer(self) -> str:
        text = self.sql.lower()
        for name, schema in self.schemas.items():
            if "`" not in name and name.lower().rpartition(".")[2] not in text:
                continue  # a table that the text cannot mean
            # A dotted name cannot be a view's: its places in the text get another one.
            self._view(name.lower() if "." not in name else f"{_PREFIX}{len(self.views)}", name, schema)
        for name, returns in self.functions.items():
            self._function(name, returns)
        plan, tree = self._analyzed(self._renamed(self.sql))
        completed(tree, plan, self._select_list, self._literal)
        return json.dumps({"format": FORMAT, "spark": self.version, "plan": tree}, separators=(",", ":"))

    @contextmanager
    def active(self) -> Iterator[None]:
        """Spark's parser and analyzer take their settings from the session that is active in the thread: ours,
        meanwhile.
        """
        sessions = self.jvm.org.apache.spark.sql.classic.SparkSession
        before = sessions.getActiveSession()
        sessions.setActiveSession(self.session)
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()

    def close(self) -> None:
        for view in self.views:
            with suppress(Exception):
                self.session.catalog().dropTempView(view)
        for name in self.functions:
            with suppress(Exception):
                self.state.catalog().dropTempFunction(name, True)

    def _view(self, view: str, name: str, schema: pa.Schema) -> None:
        columns = Schema.from_arrow(schema).to_json()
        if (view, columns) not in self.empty:
            if len(self.empty) == _MOST_EMPTY:
                del self.empty[next(iter(self.empty))]
            struct = self.jvm.org.apache.spark.sql.types.DataType.fromJson(columns)
            self.empty[view, columns] = self.session.createDataFrame(self.jvm.java.util.ArrayList(), struct)
        self.empty[view, columns].createOrReplaceTempView(f"`{view.replace('`', '``')}`")
        self.views[view] = name

    def _function(self, name: str, returns: pa.DataType) -> None:
        from pyspark.sql.types import StructType
        from pyspark.sql.udf import UserDefinedFunction

        struct = json.loads(Schema.from_arrow(pa.schema([("returned", returns)])).to_json())
        named = UserDefinedFunction(_never, StructType.fromJson(struct).fields[0].dataType, name=name)
        self.session.udf().registerPython(name, named._judf)

    def _analyzed(self, text: str) -> tuple[Any, Tree]:
        mode = self.jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
        execution = self.state.executePlan(self.state.sqlParser().parsePlan(text), mode)
        execution.assertAnalyzed()
        plan = execution.analyzed()
        return plan, bare(json.loads(plan.toJSON()), self.views)

    def _select_list(self, text: str) -> list[Tree]:
        """The expressions of a SELECT without FROM."""
        plan, tree = self._analyzed(text)
        completed(tree, plan, self._select_list, self._literal)
        found: list[Tree] = tree[0]["projectList"]
        return found

    def _literal(self, value: Any, dtype: Any) -> str:
        return str(self.jvm.org.apache.spark.sql.catalyst.expressions.Literal.create(value, dtype).sql())

    # --- dotted names

    def _renamed(self, text: str) -> str:
        dotted = {n.lower(): v for v, n in self.views.items() if "." in n}
        if not dotted:
            return text
        parsed = self.state.sqlParser().parsePlan(text)
        found = sorted(set(_relations(json.loads(parsed.toJSON()), parsed, dotted.keys())))
        out, at, length = [], 0, 0
        for start, name, aliased in found:
            match = re.compile(r"\s*\.\s*".join(rf"`?{re.escape(p)}`?" for p in name.split(".")), re.IGNORECASE).match(
                text, start
            )
            if match is None:
                continue
            alias = "" if aliased else f" AS `{name.rpartition('.')[2]}`"
            piece = f"{dotted[name]}{alias}"
            out += [text[at:start], piece]
            length += start - at + len(piece)
            at = match.end()
            self.shifts.append((length, at))
        return "".join([*out, text[at:]])

    # --- errors

    def failure(self, error: Exception) -> HeadwaterError:
        """An error of Spark's in its own first sentence, at its place in the user's text."""
        condition = str(_asked(error, "getCondition") or "")
        given: Mapping[str, str] = _asked(error, "getMessageParameters") or {}
        place = self._place(error)
        if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
            name = given.get("relationName", "").replace("`", "")
            return NotFoundError.table(name, sorted(self.schemas), self.sql).placed_at(self.sql, place)
        if condition.startswith("UNRESOLVED_COLUMN"):
            near = [n.replace("`", "").rpartition(".")[2] for n in given.get("proposal", "").split(", ") if n]
            name = given.get("objectName", "").replace("`", "")
            return NotFoundError.column(name, near, where=self.sql).placed_at(self.sql, place)
        if type(error).__module__.startswith("py4j") and "java.lang.StackOverflowError" in str(error):
            return ExpressionError.spark(self.sql, "it is nested too deep")
        if not condition and type(error).__name__ not in ("AnalysisException", "ParseException"):
            why = _sentence(str(error))
            hint = "write the query in another way, or let Headwater read the SQL itself"
            return UnsupportedError.operation("Spark's plan of this query cannot be read", why, hint)
        return ExpressionError.spark(self.sql, self._named(_sentence(str(error))), place)

    def _named(self, message: str) -> str:
        for view, name in self.views.items():
            message = message.replace(f"`{view}`", f"`{name}`")
        return message

    def _place(self, error: Exception) -> int | None:
        for context in _asked(error, "getQueryContext") or ():
            with suppress(Exception):
                return self._original(int(context.startIndex()))
        if found := re.search(r"\(line (\d+), pos (\d+)\)", str(error)):
            return None if int(found[1]) > 1 else self._original(int(found[2]))
        return None

    def _original(self, at: int) -> int:
        there, here = max(s for s in self.shifts if s[0] <= at)
        return min(here + at - there, len(self.sql))


def _never(*_: object) -> None:
    """What Spark is given in the place of a Python function, so that it knows the name."""


def _relations(nodes: Tree, root: Any, names: Any) -> Iterator[tuple[int, str, bool]]:
    """Where the tables of these names stand in the text, and whether they have an alias."""
    yield from _Relations(names).of(nodes, root)


class _Relations:
    def __init__(self, names: Any) -> None:
        self.names = names

    def of(self, nodes: Tree, root: Any) -> Iterator[tuple[int, str, bool]]:
        yield from self._node(nodes, 0, root, aliased=False)

    def _wanted(self, value: Any) -> bool:
        if isinstance(value, dict):
            return self._name(value) in self.names or any(map(self._wanted, value.values()))
        return isinstance(value, list) and any(map(self._wanted, value))

    def _name(self, node: Mapping[str, Any]) -> str | None:
        if short(str(node.get("class", ""))) != "UnresolvedRelation":
            return None
        return ".".join(str(node["multipartIdentifier"]).strip("[]").split(", ")).lower()

    def _node(self, nodes: Tree, at: int, found: Any, *, aliased: bool) -> Iterator[tuple[int, str, bool]]:
        node = nodes[at]
        name = self._name(node)
        if name is not None and name in self.names:
            yield int(found.origin().startIndex().get()), name, aliased
            return
        for key, value in node.items():
            if isinstance(value, list) and self._wanted(value):
                yield from self._value(value, getattr(found, key)())
        child, has_alias = at + 1, short(node["class"]) == "SubqueryAlias"
        for number in range(int(node.get("num-children", 0))):
            last = end_of(nodes, child)
            if self._wanted(nodes[child:last]):
                yield from self._node(nodes, child, found.children().apply(number), aliased=has_alias)
            child = last

    def _value(self, value: Any, found: Any) -> Iterator[tuple[int, str, bool]]:
        if is_tree(value):
            yield from self._node(value, 0, found.get() if _is_some(found) else found, aliased=False)
            return
        for number, part in enumerate(value):
            if isinstance(part, list) and self._wanted(part):
                yield from self._value(part, found.apply(number))
            elif isinstance(part, dict) and self._wanted(part):
                for key, inner in part.items():  # a pair: a name of WITH and its query
                    if isinstance(inner, list) and self._wanted(inner):
                        yield from self._value(inner, getattr(found.apply(number), key)())


def _is_some(found: Any) -> bool:
    return str(found.getClass().getSimpleName()) == "Some"


def _asked(error: Exception, method: str) -> Any:
    found = getattr(error, method, None)
    with suppress(Exception):
        return found() if found is not None else None
    return None


def _sentence(message: str) -> str:
    """Spark's message without its code, state, plan and trace."""
    first = message.strip().split("\n")[0]
    first = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", first)
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", first).rstrip(". ")
