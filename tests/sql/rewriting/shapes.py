"""Queries with subqueries of every shape, made from a seed, over three small tables full of nulls and duplicates.

Each level may hold subqueries of its own and read the columns of all levels around it: by equality, by other comparisons, in select lists and
in aggregates. What SQL leaves open (LIMIT without an order, which of two rows) is never asked for.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa

TABLES = {"t": ("a", "b", "c"), "u": ("k", "v", "w"), "s": ("x", "y", "z")}


def tables(seed: int, rows: int = 7) -> dict[str, pa.Table]:
    """The three tables, of whole numbers from 0 to 4 and nulls."""
    dice = random.Random(seed)

    def column() -> pa.Array:
        return pa.array([dice.choice([None, 0, 1, 1, 2, 2, 3, 4]) for _ in range(rows)], pa.int32())

    return {name: pa.table({c: column() for c in columns}) for name, columns in TABLES.items()}


@dataclass
class Shapes:
    """Writes queries; ``spark`` keeps to what Spark takes: only the next level around is read."""

    seed: int
    spark: bool = False
    dice: random.Random = field(init=False)
    number: int = 0

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    def query(self) -> str:
        """One query with at least one subquery."""
        for _ in range(100):
            text = self._outermost()
            if text.count("SELECT") > 1:
                return text
        raise AssertionError("no subquery in a hundred queries")

    def _outermost(self) -> str:
        source, columns = self._from()
        pick = self.dice
        kind = pick.random()
        where = f" WHERE {self.condition([columns], 2, top=True)}" if pick.random() < 0.75 else ""
        if kind < 0.2:
            key = pick.choice(columns)
            having = f" HAVING {self._having(key, columns)}" if pick.random() < 0.6 else ""
            given = pick.choice(columns)
            if pick.random() < 0.4:
                given = self.scalar([columns], 1)
            return f"SELECT {key}, count(*), sum({given}) FROM {source}{where} GROUP BY {key}{having}"
        items = [*pick.sample(columns, 2)]
        if pick.random() < 0.6:
            items.append(self.value([columns], 2))
        if pick.random() < 0.2:
            items.append(f"CASE WHEN {self.test([columns], 1)} THEN 1 ELSE {self.value([columns], 1)} END")
        distinct = "DISTINCT " if pick.random() < 0.15 else ""
        return f"SELECT {distinct}{', '.join(items)} FROM {source}{where}"

    def _having(self, key: str, columns: list[str]) -> str:
        pick = self.dice
        if pick.random() < 0.5:
            return f"count(*) >= {self.scalar([[key]], 1)}"
        return f"{pick.choice(['', 'NOT '])}EXISTS {self.rows([[key]], 1)}"

    def _table(self) -> tuple[str, list[str]]:
        self.number += 1
        name = self.dice.choice(list(TABLES))
        alias = f"{name}{self.number}"
        return f"{name} AS {alias}", [f"{alias}.{c}" for c in TABLES[name]]

    def _from(self) -> tuple[str, list[str]]:
        source, columns = self._table()
        if self.dice.random() < 0.3:
            other, more = self._table()
            on = f"{self.dice.choice(columns)} = {self.dice.choice(more)}"
            kind = self.dice.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ","])
            if kind == ",":
                return f"{source}, {other}", columns + more
            if self.dice.random() < 0.2 and kind in ("JOIN", "LEFT JOIN"):
                on += f" AND EXISTS {self.rows([columns], 0)}"
            return f"{source} {kind} {other} ON {on}", columns + more
        return source, columns

    # --- expressions over the columns of all levels, the innermost last

    def column(self, levels: list[list[str]]) -> str:
        seen = levels[-2:] if self.spark else levels
        weights = [1] * (len(seen) - 1) + [3]
        return self.dice.choice(self.dice.choices(seen, weights)[0])

    def value(self, levels: list[list[str]], depth: int) -> str:
        kind = self.dice.random()
        if depth > 0 and kind < 0.5:
            return self.scalar(levels, depth - 1)
        if kind < 0.6:
            return f"({self.column(levels)} + {self.column(levels)})"
        return self.column(levels) if kind < 0.9 else str(self.dice.randrange(4))

    def test(self, levels: list[list[str]], depth: int) -> str:
        """A condition that may stand anywhere: no IN with a subquery."""
        kind = self.dice.random()
        if depth > 0 and kind < 0.45:
            return f"{self.dice.choice(['', 'NOT '])}EXISTS {self.rows(levels, depth - 1)}"
        if kind < 0.55:
            return f"{self.column(levels)} IS {self.dice.choice(['', 'NOT '])}NULL"
        op = self.dice.choice(["=", "=", "<", ">=", "!=", "<=>"])
        return f"{self.value(levels, depth)} {op} {self.value(levels, 0)}"

    def condition(self, levels: list[list[str]], depth: int, *, top: bool = False) -> str:
        """A condition of a filter."""
        parts = [self._part(levels, depth, top=top) for _ in range(self.dice.choice([1, 1, 2, 3]))]
        if len(parts) > 1 and self.dice.random() < 0.35:
            parts = [self._part(levels, depth, top=False) for _ in parts]
            return "(" + " OR ".join(parts) + ")"
        return " AND ".join(parts)

    def _part(self, levels: list[list[str]], depth: int, *, top: bool) -> str:
        kind = self.dice.random()
        if depth > 0 and kind < 0.35:
            word = "NOT IN" if self.dice.random() < 0.45 else "IN"
            return f"{self.value(levels, 0)} {word} {self.rows(levels, depth - 1, one=True)}"
        if depth > 0 and kind < 0.4:
            return f"NOT ({self.test(levels, depth)} AND {self.test(levels, 0)})"
        return self.test(levels, depth)

    # --- subqueries

    def scalar(self, levels: list[list[str]], depth: int) -> str:
        """A subquery of one row at most."""
        source, columns = self._from()
        inside = [*levels, columns]
        kind = self.dice.random()
        if kind < 0.06:
            return f"(SELECT {self.dice.choice(levels[-1])})"
        where = self._where(inside, depth)
        given = self.dice.choice(columns)
        if kind < 0.8:
            made = self.dice.choice(
                ["max({})", "count(*)", "sum({})", "count({})", "count(DISTINCT {})", "min({}) + 1"]
            )
            having = " HAVING count(*) > 1" if self.dice.random() < 0.15 else ""
            return f"(SELECT {made.format(given)} FROM {source}{where}{having})"
        order = ", ".join(f"{c} DESC" for c in columns)
        if kind < 0.9:
            return f"(SELECT {given} FROM {source}{where} ORDER BY {order} LIMIT 1)"
        return f"(SELECT sum(q) FROM (SELECT DISTINCT {given} AS q FROM {source}{where}))"

    def rows(self, levels: list[list[str]], depth: int, *, one: bool = False) -> str:
        """A subquery of any number of rows; of one column if asked."""
        source, columns = self._from()
        inside = [*levels, columns]
        where = self._where(inside, depth)
        given = self.dice.choice(columns) if one else self.dice.choice(["1", "*", columns[0]])
        kind = self.dice.random()
        if kind < 0.1:
            return f"(SELECT DISTINCT {given} FROM {source}{where})"
        if kind < 0.2:
            key = self.dice.choice(columns)
            having = f" HAVING count(*) >= {self.dice.choice([1, 2])}"
            return f"(SELECT {key} FROM {source}{where} GROUP BY {key}{having})"
        if kind < 0.28 and one:
            return f"(SELECT {self.dice.choice(['max', 'count'])}({given}) FROM {source}{where})"
        if kind < 0.36:
            order = ", ".join(columns)
            return f"(SELECT {given} FROM {source}{where} ORDER BY {order} LIMIT {self.dice.choice([1, 2])})"
        if kind < 0.44:
            other, theirs = self._table()
            word = self.dice.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
            first, second = (given if one else columns[0]), theirs[0]
            more = self._where([*levels, theirs], depth)
            return f"(SELECT {first} FROM {source}{where} {word} SELECT {second} FROM {other}{more})"
        if kind < 0.5:
            ordered = ", ".join(columns)
            window = f"row_number() OVER (PARTITION BY {columns[1]} ORDER BY {ordered})"
            return f"(SELECT q FROM (SELECT {window} AS q FROM {source}{where}) WHERE q > 1)"
        return f"(SELECT {given} FROM {source}{where})"

    def _where(self, levels: list[list[str]], depth: int) -> str:
        parts = []
        if self.dice.random() < 0.8:
            outer = self.dice.choice(levels[-2] if self.spark else self.dice.choice(levels[:-1]))
            op = self.dice.choice(["=", "=", "=", "=", "<=>", "<", ">="])
            parts.append(f"{self.dice.choice(levels[-1])} {op} {outer}")
        if self.dice.random() < 0.5:
            parts.append(self.condition(levels, depth))
        return f" WHERE {' AND '.join(parts)}" if parts else ""
