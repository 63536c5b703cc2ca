"""An oracle for circuits: random histories, checked against a recomputation after every step.

A `Trial` is a circuit, and for each of its outputs a query that DuckDB can answer over the tables that the inputs come
to. `run` draws a history (insertions, deletions and updates of random rows on all inputs, batches of random size, empty
ones, transactions, restarts from a checkpoint with another number of shards), steps the circuit, and after every step
compares the sum of each output's changes with DuckDB's answer. The first difference is an AssertionError that shows the
output, the step and the rows.

>>> import pyarrow as pa
>>> def build(c):
...     c.input("t", pa.schema([("a", pa.int64())])).filter("a > 2").output("big")
>>> trial = Trial(build, {"big": "SELECT a FROM t WHERE a > 2"}, {"t": lambda rng: (rng.randint(0, 5),)})
>>> run(trial, steps=5, seed=1)
5
"""

from __future__ import annotations

import math
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headwater.base.change import WEIGHT
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.circuit.outputs import Outputs
from headwater.incremental.store import Store
from headwater.sql.udfs import install

__all__ = ["Draw", "Integral", "Oracle", "Trial", "run"]

Row = tuple[Any, ...]
Draw = Callable[[random.Random], Row]
Oracle = Callable[[str, Mapping[str, pa.Table]], pa.Table]
"""Gives the answer of a query over tables."""

_NAN = "NaN"


@dataclass(frozen=True)
class Trial:
    """A circuit and what its outputs should be.

    Parameters
    ----------
    build
        puts inputs, operators and outputs into an empty circuit
    answers
        for each output a query over the inputs, as DuckDB writes it
    draws
        for each input a function that draws a random row
    """

    build: Callable[[Circuit], None]
    answers: Mapping[str, str]
    draws: Mapping[str, Draw]


@dataclass
class Integral:
    """What changes add up to: rows with their weights, none of them zero."""

    rows: Counter[Row] = field(default_factory=Counter)

    def add(self, table: pa.Table) -> None:
        """Take a change: a table with ``_weight``."""
        columns = [c.to_pylist() for c in table.columns]
        for *values, weight in zip(*columns, strict=True):
            row = tuple(map(_comparable, values))
            self.rows[row] += weight
            if not self.rows[row]:
                del self.rows[row]


class _NegativeZero(float):
    """-0.0, which is another value than 0.0: a row that has one is not the row that has the other."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NegativeZero)

    def __hash__(self) -> int:
        return -1


def _told_apart(value: Any) -> Any:
    """A value that a table can count."""
    return _NegativeZero(value) if isinstance(value, float) and _comparable(value) == "-0.0" else value


def _comparable(value: Any) -> Any:
    """A value that is equal to itself, and only to itself."""
    if isinstance(value, float):
        return _NAN if math.isnan(value) else ("-0.0" if value == 0 and math.copysign(1, value) < 0 else value)
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    if isinstance(value, dict):
        return tuple((k, _comparable(v)) for k, v in value.items())
    return value


def run(
    trial: Trial,
    *,
    steps: int,
    seed: int,
    shards: Sequence[int] = (1, 2, 3),
    most_rows: int = 6,
    deletes: float = 0.4,
    restarts: float = 0.1,
    transactions: float = 0.1,
    oracle: Oracle | None = None,
    every: int = 1,
) -> int:
    """Play a history, and give the number of its steps.

    Outputs are compared after ``every`` so many steps, with what ``oracle`` says, which is given the tables; else with
    DuckDB's answer.
    """
    import duckdb

    rng = random.Random(seed)
    circuit = _built(trial, rng.choice(shards))
    schemas = {name: _input_schema(circuit, name) for name in trial.draws}
    tables: dict[str, Counter[Row]] = {name: Counter() for name in trial.draws}
    integrals = {name: Integral() for name in trial.answers}
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as database:
        database.execute("SET threads = 1; SET TimeZone = 'UTC'")
        for query in trial.answers.values() if oracle is None else ():
            install(database, query)
        store = Store(folder)
        for step in range(steps):
            outputs = _stepped(circuit, trial, tables, schemas, rng, most_rows, deletes, transactions)
            for name, integral in integrals.items():
                integral.add(outputs[name].to_arrow())
            if (step + 1) % every == 0:
                given = {name: _table(_listed(table), schemas[name]) for name, table in tables.items()}
                for name, integral in integrals.items():
                    wanted = _recomputed(database, trial.answers[name], given, oracle)
                    _compare(name, step, integral.rows, wanted)
            if rng.random() < restarts:
                circuit.checkpoint(store)
                circuit = _built(trial, rng.choice(shards))
                circuit.restore(store)
                store.sweep()
        del circuit
        store.close()
    return steps


def _built(trial: Trial, shards: int) -> Circuit:
    circuit = Circuit("trial", shards=shards)
    trial.build(circuit)
    return circuit


def _input_schema(circuit: Circuit, name: str) -> pa.Schema:
    return circuit.inputs[name].layout.schema


def _stepped(
    circuit: Circuit,
    trial: Trial,
    tables: dict[str, Counter[Row]],
    schemas: Mapping[str, pa.Schema],
    rng: random.Random,
    most_rows: int,
    deletes: float,
    transactions: float,
) -> Outputs:
    def changes() -> dict[str, pa.Table]:
        found = {}
        for name, draw in trial.draws.items():
            rows = _drawn(tables[name], draw, rng, rng.randint(0, most_rows), deletes)
            if rows or rng.random() < 0.5:
                found[name] = _table(rows, schemas[name])
        return found

    if rng.random() >= transactions:
        return circuit.step(changes())
    with circuit.transaction() as transaction:
        for _ in range(rng.randint(1, 3)):
            circuit.step(changes())
    assert transaction.outputs is not None
    return transaction.outputs


def _drawn(table: Counter[Row], draw: Draw, rng: random.Random, count: int, deletes: float) -> list[tuple[Row, int]]:
    rows = []
    for _ in range(count):
        if table and rng.random() < deletes:
            row, weight = rng.choice(list(table)), -1
        else:
            row, weight = tuple(map(_told_apart, draw(rng))), 1
        table[row] += weight
        if not table[row]:
            del table[row]
        rows.append((row, weight))
    return rows


def _table(rows: Sequence[tuple[Row, int]], schema: pa.Schema) -> pa.Table:
    columns = [pa.array([row[i] for row, _ in rows], f.type) for i, f in enumerate(schema)]
    weights = pa.array([w for _, w in rows], pa.int64())
    return pa.Table.from_arrays([*columns, weights], schema=schema.append(pa.field(WEIGHT, pa.int64())))


def _listed(table: Counter[Row]) -> list[tuple[Row, int]]:
    return [(row, 1) for row, weight in table.items() for _ in range(weight)]


def _recomputed(database: Any, query: str, tables: Mapping[str, pa.Table], oracle: Oracle | None) -> Counter[Row]:
    plain = {name: table.drop_columns([WEIGHT]) for name, table in tables.items()}
    if oracle is not None:
        answer = oracle(query, plain)
    else:
        for name, table in plain.items():
            database.register(name, table)
        answer = database.sql(query).to_arrow_table()
    found: Counter[Row] = Counter()
    for values in zip(*(c.to_pylist() for c in answer.columns), strict=True):
        found[tuple(map(_comparable, values))] += 1
    return found


def _compare(name: str, step: int, have: Counter[Row], want: Counter[Row]) -> None:
    if have == want:
        return
    extra = {r: w - want[r] for r, w in have.items() if w > want[r]}
    missing = {r: w - have[r] for r, w in want.items() if w > have[r]}
    raise AssertionError(f"output {name} after step {step}: too much {extra}, too little {missing}")
