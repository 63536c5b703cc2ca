"""Definitions: what a feature table is computed by and from, as its table's log keeps it.

The definition is the value of the domain ``headwater.features``, version 1::

    {"version": 1, "function": "<module>:<name>", "text": "<the function's text>", "fingerprint": "<16 digits>",
     "policy": "auto" | "strict" | "full", "time": "<column>" or null, "by": ["<column>", …], "tiebreak": ["<column>",
     …], "inputs": [{"table": "<name>", "schema": "<Delta schema as JSON>", "columns": ["<name>", …]}, …],
     "schema": "<Delta schema as JSON>"}

The schemas are those of the day of the definition: a stream over a table has the columns that the table had then.
``time`` and ``by`` are those of the stream that the function gives, by which training sets look rows up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

import pyarrow as pa

from headwater.base.errors import CorruptionError, InputError
from headwater.base.kinds import words_of
from headwater.base.schema import Schema
from headwater.derived.sources import Input
from headwater.lake.actions import Action
from headwater.lake.published import definition_domain, domain
from headwater.lake.snapshot import Snapshot
from headwater.sql.functions.user import source_text
from headwater.timeseries.features.constancy import check_constant
from headwater.timeseries.features.function import Build, fingerprint_of, name_of
from headwater.timeseries.node import Node, Ordering
from headwater.timeseries.running.narrowing import narrowed
from headwater.timeseries.sources.delta import DeltaSource
from headwater.timeseries.stream import Stream

__all__ = ["WORDS", "Definition", "Policy"]

WORDS = words_of("features")
Policy = Literal["auto", "strict", "full"]
"""How a feature table may be refreshed: as is best; only from changes; only from scratch."""

_VERSION = 1
_DOMAIN = definition_domain(WORDS.name)


@dataclass(frozen=True)
class Definition:
    """A function of tables, and what it read when it was defined."""

    function: str
    text: str
    fingerprint: str
    policy: Policy
    time: str | None
    by: tuple[str, ...]
    tiebreak: tuple[str, ...]
    tables: tuple[tuple[str, str, tuple[str, ...]], ...]
    """Name, schema and columns of each table that is read."""
    output: str
    """The schema of the rows."""

    @classmethod
    def of_stream(cls, build: Build, stream: Stream, policy: Policy) -> Definition:
        """What a function means, by the stream that it gives now."""
        check_constant(stream.plan)
        plan, found = stream.plan, dict[str, tuple[str, set[str]]]()
        for leaf in _sources(narrowed(plan)):
            schema, columns = found.setdefault(leaf.table.name, (leaf.snapshot.schema.to_json(), set()))
            columns.update(leaf.names)
            columns.update(one.column for one in leaf.conjuncts)
        tables = []
        for name, (schema, columns) in sorted(found.items()):
            names = [n for n in Schema.from_json(schema).names if n in columns]
            tables.append((name, schema, tuple(names)))
        if not tables:
            raise InputError.bad_argument("build", name_of(build), "a function that reads a table of the lake")
        order = stream.ordering
        made = cls(
            name_of(build),
            source_text(build),
            fingerprint_of(build, plan),
            policy,
            None if order is None else order.time,
            () if order is None else order.by,
            () if order is None else order.tiebreak,
            tuple(tables),
            Schema.from_arrow(plan.schema).to_json(),
        )
        return made.checked()

    def checked(self) -> Definition:
        """The same; an error for options that there are not."""
        if self.policy not in get_args(Policy):
            raise InputError.bad_argument("policy", self.policy, '"auto", "strict" or "full"')
        return self

    # -- in the log ------------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, base: Snapshot) -> Definition | None:
        """The definition in a table's log; None if the table is no feature table."""
        body = base.state.domains.get(_DOMAIN)
        if body is None:
            return None
        try:
            return _parsed(body["configuration"])
        except (KeyError, TypeError, ValueError) as e:
            raise CorruptionError.state_file(f"the domain {_DOMAIN}", str(e), base.where) from e

    def action(self) -> Action:
        """The action that puts it into a commit."""
        inputs = [{"table": name, "schema": text, "columns": list(columns)} for name, text, columns in self.tables]
        value: dict[str, Any] = {
            "version": _VERSION,
            "function": self.function,
            "text": self.text,
            "fingerprint": self.fingerprint,
            "policy": self.policy,
            "time": self.time,
            "by": list(self.by),
            "tiebreak": list(self.tiebreak),
            "inputs": inputs,
            "schema": self.output,
        }
        return domain(_DOMAIN, value)

    # -- what it means ---------------------------------------------------------------------------------------------

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the table; any of them may be null."""
        return pa.schema([f.with_nullable(True) for f in Schema.from_json(self.output).arrow])

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """What is read of each table."""
        return tuple(Input(name, name, Schema.from_json(text).arrow, columns) for name, text, columns in self.tables)

    @property
    def ordering(self) -> Ordering | None:
        """The series that the rows are."""
        return None if self.time is None else Ordering(self.time, self.by, self.tiebreak)

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the tables that are read, sorted."""
        return tuple(sorted(name for name, _, _ in self.tables))

    def same_rows(self, other: Definition) -> bool:
        """Whether the same rows are meant."""
        return (self.fingerprint, self.reads, self.output) == (other.fingerprint, other.reads, other.output)


def _sources(node: Node) -> list[DeltaSource]:
    if isinstance(node, DeltaSource):
        return [node]
    return [leaf for below in node.inputs for leaf in _sources(below)]


@lru_cache(maxsize=256)
def _parsed(text: str) -> Definition:
    found = json.loads(text)
    if found["version"] != _VERSION:
        raise ValueError(f"its version is {found['version']}, and this Headwater knows {_VERSION}")
    tables = tuple((one["table"], one["schema"], tuple(one["columns"])) for one in found["inputs"])
    rest: dict[str, Any] = {name: found[name] for name in ("function", "text", "fingerprint", "policy", "time")}
    rest |= {name: tuple(found[name]) for name in ("by", "tiebreak")}
    return Definition(tables=tables, output=found["schema"], **rest)
