"""Definitions: what a view is a view of, as its table's log keeps it.

The definition is the value of the domain ``headwater.view``; version 1, or 2 where there are functions::

    {"version": 1, "sql": "<query>", "policy": "auto", "shards": 1,
     "tables": {"<as the query names it>": {"table": "<name>", "schema": "<Delta schema as JSON>"}, …},
     "analyzed": "<Spark's analyzed plan: JSON, zlib, base64>" or null,
     "functions": {"<name>": "<fingerprint>", …}}   the user's own, in version 2; a view without them is of version 1

The schemas are those of the day on which the view was defined. The query is always read against them, so ``SELECT *``
means the columns of that day, and the circuit, and with it the names of its state, stay what they were. Where our own
reader refuses a query, Spark's analyzed plan is kept, and refreshing needs no JVM either.

**Functions of the user's own.** A view is a view by the very functions that it was defined with. Its definition keeps
their names and fingerprints. The functions themselves are the process's, registered with the lake, so a process that
lacks one, or has another one of its name, stops before anything is read.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

import pyarrow as pa

from headwater.base.errors import CorruptionError, InputError, NotFoundError, UnsupportedError
from headwater.base.schema import Schema
from headwater.derived.sources import Input
from headwater.incremental.views.refusals import about_reading
from headwater.incremental.views.words import WORDS
from headwater.lake.actions import Action
from headwater.lake.published import definition_domain, domain
from headwater.lake.snapshot import Snapshot
from headwater.sql.demands import Demand, demands, narrowest
from headwater.sql.functions.user import UserFunction, registered, user_operators
from headwater.sql.nodes import Refused, walk
from headwater.sql.plan import Plan, Scan
from headwater.sql.query import parse_query
from headwater.sql.rewriting import prepared

__all__ = ["Definition", "Policy", "check_functions", "functions_of", "missing", "same_functions"]


def functions_of(plan: Plan) -> dict[str, str]:
    """The user's functions that a plan calls: the fingerprint of each by its name."""
    parts = [part for node in _nodes(plan) for e in node.expressions for part in walk(e)]
    return dict(sorted(user_operators(parts)))


def _nodes(plan: Plan) -> list[Plan]:
    inner = [*plan.children, *(s.plan for s in plan.subqueries())]
    return [plan, *(node for part in inner for node in _nodes(part))]


def missing(wanted: Mapping[str, str], registered: Mapping[str, UserFunction]) -> list[str]:
    """The names of functions that are wanted and not registered."""
    return [name for name in wanted if name not in registered]


def same_functions(wanted: Mapping[str, str], registered: Mapping[str, UserFunction]) -> bool:
    """Whether those that are wanted are those that are registered."""
    return all(registered[name].fingerprint == print_ for name, print_ in wanted.items() if name in registered)


def check_functions(view: str, wanted: Mapping[str, str], registered: Mapping[str, UserFunction]) -> None:
    """Stop where a view's functions are not at hand."""
    for name in missing(wanted, registered):
        raise NotFoundError.function(name, view, wanted[name], list(registered))
    for name, print_ in wanted.items():
        if registered[name].fingerprint != print_:
            raise InputError.other_function(name, view, print_, registered[name].fingerprint)


Policy = Literal["auto", "strict", "full"]
"""How a view may be refreshed: as is best; only from changes; only anew."""

_VERSIONS = (1, 2)
_DOMAIN = definition_domain(WORDS.name)


@dataclass(frozen=True)
class Definition:
    """A query with the schemas of its tables, and how the view is to be refreshed."""

    sql: str
    policy: Policy
    shards: int
    tables: Mapping[str, tuple[str, str]]
    analyzed: str | None = None
    functions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        sql: str,
        policy: Policy,
        shards: int,
        schema_of: Callable[[str], tuple[str, Schema]],
        analyze: Callable[[str], str] | None = None,
        functions: Mapping[str, UserFunction] | None = None,
    ) -> Definition:
        """The definition of a new view; ``schema_of`` gives a table's name in the lake and its columns."""
        if policy not in get_args(Policy):
            raise InputError.bad_argument("policy", policy, '"auto", "strict" or "full"')
        if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
            raise InputError.bad_argument("shards", shards, "a whole number of at least 1")
        if not isinstance(sql, str):
            raise InputError.bad_argument("sql", sql, "a query, as text")
        tables: dict[str, tuple[str, str]] = {}

        def look_up(name: str, version: int | None, timestamp: datetime | None) -> pa.Schema:
            if version is not None or timestamp is not None:
                why = "a view follows its sources, and an old version does not change"
                hint = "leave VERSION AS OF or TIMESTAMP AS OF out, or keep those rows in a table of their own"
                raise UnsupportedError.operation(f"reading an old version of `{name}` in a view", why, hint)
            table, schema = schema_of(name)
            tables[name] = (table, schema.to_json())
            return schema.arrow

        analyzed = None
        called: dict[str, str] = {}
        try:
            plan = parse_query(sql, look_up, user_functions=(functions or {}).values())
            called = functions_of(plan)
        except NotFoundError:
            raise
        except InputError as refusal:
            about_reading(refusal, asked=analyze is not None)
            if analyze is None:
                raise
            known = list((functions or {}).values())
            analyzed = _from_spark(sql, analyze, known, refusal)
            tables.clear()
            plan = _plan_of(_unpacked(analyzed), known)
            called = functions_of(plan)
            for node in plan.walk():
                if isinstance(node, Scan):
                    look_up(node.name, node.version, node.timestamp)
        made = cls(sql, policy, shards, tables, analyzed, called)
        if analyzed is None:
            made.__dict__["plan"] = plan  # it was just read by these very columns
        return made

    # -- in the log ------------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, base: Snapshot) -> Definition | None:
        """The definition in a table's log; None if the table is not a view's."""
        body = base.state.domains.get(_DOMAIN)
        if body is None:
            return None
        try:
            return _parsed(body["configuration"])
        except (KeyError, TypeError, ValueError) as e:
            raise CorruptionError.state_file(f"the domain {_DOMAIN}", str(e), base.where) from e

    def action(self) -> Action:
        """The action that puts it into a commit."""
        value: dict[str, Any] = {
            "version": 2 if self.functions else 1,
            "sql": self.sql,
            "policy": self.policy,
            "shards": self.shards,
            "tables": {relation: {"table": table, "schema": text} for relation, (table, text) in self.tables.items()},
            "analyzed": self.analyzed,
        }
        if self.functions:
            value["functions"] = dict(self.functions)
        return domain(_DOMAIN, value)

    @property
    def text(self) -> str:
        """The definition as the log keeps it, to be sent to another process (`from_text`)."""
        return str(self.action()["domainMetadata"]["configuration"])

    @classmethod
    def from_text(cls, text: str) -> Definition:
        """The definition that a text keeps."""
        return _parsed(text)

    # -- what it means ---------------------------------------------------------------------------------------------

    @cached_property
    def plan(self) -> Plan:
        """The query, read against the schemas of the day of its definition."""
        known = [registered(name, fingerprint) for name, fingerprint in self.functions.items()]
        if self.analyzed is not None:
            return _plan_of(_unpacked(self.analyzed), known)
        return parse_query(self.sql, self._schema, user_functions=known)

    @cached_property
    def answer(self) -> Plan:
        """The query for a query engine, with one answer: where SQL leaves open which rows are meant,
        those that a circuit gives.
        """
        from headwater.incremental.planning import determined

        return determined(self.plan, any_rows=self.policy == "full")

    def answer_at(self, now: datetime) -> Plan:
        """The same with the clock at an instant; only a view that is always computed from scratch may read it."""
        from headwater.incremental.planning import determined

        if self.policy != "full" or self.analyzed is not None:
            return self.answer
        known = [registered(name, fingerprint) for name, fingerprint in self.functions.items()]
        plan = parse_query(self.sql, self._schema, user_functions=known, now=now)
        return determined(plan, any_rows=True)

    def _schema(self, name: str, version: int | None, timestamp: datetime | None) -> pa.Schema:
        return Schema.from_json(self.tables[name][1]).arrow

    @cached_property
    def inputs(self) -> dict[str, Input]:
        """The tables that are read, by the names that the query gives them."""
        wanted: dict[str, set[str]] = {}
        # The answer may have to look at columns that only break ties, and the circuit at one that only says how many
        # rows there are.
        for demand in [*demands(self.answer), *self._followed]:
            scan = demand.scan
            if scan.relation not in self.tables:
                continue
            columns = demand.columns or (scan.columns[narrowest([a.dtype for a in scan.columns])].name,)
            wanted.setdefault(scan.relation, set()).update(columns)
        found = {}
        for relation, names in wanted.items():
            table, text = self.tables[relation]
            schema = Schema.from_json(text).arrow
            found[relation] = Input(relation, table, schema, tuple(n for n in schema.names if n in names))
        return found

    @property
    def _followed(self) -> list[Demand]:
        """What a circuit reads, which leaves out what nobody asks for."""
        try:
            return [] if self.policy == "full" else demands(prepared(self.answer))
        except Refused:  # and building it says why
            return []

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the tables in the lake that the query names, sorted; known without reading the query."""
        return tuple(sorted({table for table, _ in self.tables.values()}))

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The names of the tables in the lake whose rows are read, sorted."""
        return tuple(sorted({i.table for i in self.inputs.values()}))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the view; any of them may be null as far as its table is concerned."""
        return pa.schema([f.with_nullable(True) for f in self.plan.schema])

    def same_query(self, other: Definition) -> bool:
        """Whether the same rows are meant, and kept in the same state;
        Spark numbers a plan anew each time it makes it.
        """
        mine, theirs = ((d.sql, d.tables, d.analyzed is None, d.functions) for d in (self, other))
        return mine == theirs


@lru_cache(maxsize=256)  # reading a query takes longer than a small refresh may
def _parsed(text: str) -> Definition:
    found = json.loads(text)
    if found["version"] not in _VERSIONS:
        raise ValueError(f"its version is {found['version']}, and this Headwater knows {_VERSIONS[-1]}")
    tables = {relation: (t["table"], t["schema"]) for relation, t in found["tables"].items()}
    functions = found["functions"] if found["version"] > 1 else {}
    return Definition(found["sql"], found["policy"], int(found["shards"]), tables, found["analyzed"], functions)


def _from_spark(sql: str, analyze: Callable[[str], str], functions: Iterable[UserFunction], refusal: InputError) -> str:
    try:
        text = analyze(sql)
        _plan_of(text, functions)
    except Exception as theirs:
        raise refusal from theirs
    return base64.b64encode(zlib.compress(json.dumps(json.loads(text), separators=(",", ":")).encode())).decode()


def _unpacked(text: str) -> str:
    return zlib.decompress(base64.b64decode(text)).decode()


def _plan_of(text: str, functions: Iterable[UserFunction]) -> Plan:
    from headwater.sql.analyzed import plan_of

    plan: Plan = plan_of(text, functions)
    return plan
