"""Random queries of Spark SQL, typed as they are made, so that every one of them is valid.

`Queries` keeps a list of the columns that are in sight, with their types, and makes expressions of a wanted type of
them. What may stop with an error (overflow, division by zero, a bad cast) is left out; depth is bounded by a budget
that every subquery takes from.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headwater.testing.view_expressions import Expressions

__all__ = ["Queries"]

Columns = list[tuple[str, str]]
_PLAIN = ("int", "long", "text", "double", "decimal", "date", "bool", "moment")


@dataclass
class Queries:
    """Draws queries over tables, given as (column, type)."""

    rng: random.Random
    tables: Mapping[str, Columns]
    budget: int = 6
    _names: int = 0
    _common: dict[str, Columns] = field(default_factory=dict)

    def query(self) -> str:
        """A whole query."""
        rng = self.rng
        if rng.random() < 0.15:
            sql, columns = self.select()
            self._common["c"] = columns
            body, _ = self.select()
            return f"WITH c AS ({sql}) {body}"
        if rng.random() < 0.12:
            return self._set_operation()[0]
        return self.select(top=True)[0]

    # -- the parts of a select -------------------------------------------------------------------------------------

    def select(self, types: Sequence[str] | None = None, *, top: bool = False) -> tuple[str, Columns]:
        """A select, of columns of these types if they are given."""
        self.budget -= 1
        rng = self.rng
        source, scope = self.relation()
        where = f" WHERE {self.condition(scope)}" if rng.random() < 0.5 else ""
        style = rng.choice(
            ["plain", "plain", "group", "group", "sets", "window", "window", "window", "distinct", "global"]
        )
        if style in ("group", "sets", "global"):
            return self._grouped(source, scope, where, types, style, top=top)
        made = Expressions(rng, scope)
        items = [(made.of(t), t) for t in types] if types is not None else self._items(made)
        if types is None and style == "plain" and self.budget > 0 and rng.random() < 0.15:
            items.append(self._scalar(scope))
        if style == "window" and types is None:
            items += [made.window() for _ in range(rng.randint(1, 3))]
        word = "SELECT DISTINCT" if style == "distinct" else "SELECT"
        rest = f" FROM {source}{where}"
        if style == "window" and rng.random() < 0.3:
            rest += f" QUALIFY {made.rank()} {rng.choice(['<=', '=', '<'])} {rng.randint(1, 3)}"
        return self._finished(word, items, rest, top=top)

    def _scalar(self, scope: Columns) -> tuple[str, str]:
        """A subquery that gives one value for each row."""
        rng = self.rng
        self.budget -= 1
        self._names += 1
        alias, name = f"q{self._names}", rng.choice(sorted(self.tables))
        below = Expressions(rng, [(f"{alias}.{n}", k) for n, k in self.tables[name]])
        kind = rng.choice(["int", "decimal", "long"])
        value, found = below.aggregate(kind, exactly=True)
        join = f"{alias}.k = {Expressions(rng, scope).of('int', depth=0, column=True)}"
        where = rng.choice(["", f" WHERE {join}", f" WHERE {join} AND {below.of('bool', depth=1)}"])
        return f"(SELECT {value} FROM {name} AS {alias}{where})", found

    def _items(self, made: Expressions) -> Columns:
        return [(made.of(t), t) for t in self.rng.choices(_PLAIN, k=self.rng.randint(1, 4))]

    def _finished(self, word: str, items: Columns, rest: str, *, top: bool) -> tuple[str, Columns]:
        names = [f"c{i}" for i in range(len(items))]
        listed = ", ".join(f"{sql} AS {name}" for (sql, _), name in zip(items, names, strict=True))
        text = f"{word} {listed}{rest}"
        columns = [(name, kind) for (_, kind), name in zip(items, names, strict=True)]
        # Arrays do not order: rows that differ in one only would tie.
        if self.rng.random() < (0.2 if top else 0.05) and all(kind != "array" for _, kind in columns):
            some = self.rng.sample(columns, self.rng.randint(1, len(columns)))
            order = ", ".join(self._ordering(name) for name, _ in some)
            offset = f" OFFSET {self.rng.randint(1, 2)}" if self.rng.random() < 0.3 else ""
            text += f" ORDER BY {order} LIMIT {self.rng.randint(0, 5)}{offset}"
            text = text if top else f"SELECT * FROM ({text})"
        return text, columns

    def _ordering(self, name: str) -> str:
        return name + self.rng.choice(["", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"])

    def _grouped(
        self, source: str, scope: Columns, where: str, types: Sequence[str] | None, style: str, *, top: bool
    ) -> tuple[str, Columns]:
        rng = self.rng
        made = Expressions(rng, scope)
        keys: Columns = []
        if style != "global":
            kinds = rng.choices(_PLAIN, k=rng.randint(1, 2))
            keys = [(made.of(k, depth=rng.choice([0, 0, 1]), column=True), k) for k in kinds]
            keys = list(dict(keys).items())
        inside = Expressions(rng, scope)
        if types is None:
            items = [k for k in keys if rng.random() < 0.8]
            items += [inside.aggregate(rng.choice(_PLAIN)) for _ in range(rng.randint(1, 3))]
        else:
            items = [inside.aggregate(t, exactly=True) for t in types]
        by = ", ".join(k for k, _ in keys)
        if style == "sets" and keys:
            by = self._sets([k for k, _ in keys])
            if types is None and rng.random() < 0.5:
                items.append((f"(grouping({keys[0][0]}) = 1)", "bool"))
        rest = f" FROM {source}{where}" + (f" GROUP BY {by}" if keys else "")
        if rng.random() < 0.2:
            rest += f" HAVING {inside.aggregate('int', exactly=True)[0]} > {rng.randint(-1, 2)}"
        return self._finished("SELECT", items, rest, top=top)

    def _sets(self, keys: list[str]) -> str:
        way = self.rng.choice(["ROLLUP", "CUBE", "GROUPING SETS"])
        if way != "GROUPING SETS":
            return f"{way}({', '.join(keys)})"
        sets = [self.rng.sample(keys, self.rng.randint(0, len(keys))) for _ in range(self.rng.randint(1, 3))]
        if {k for s in sets for k in s} != set(keys):
            sets.append(keys)
        return f"GROUPING SETS ({', '.join('(' + ', '.join(s) + ')' for s in sets)})"

    def _set_operation(self) -> tuple[str, Columns]:
        rng = self.rng
        types = rng.choices(_PLAIN, k=rng.randint(1, 3))
        left, columns = self.select(types)
        right, _ = self.select(types)
        word = rng.choice(["UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        return f"({left}) {word} ({right})", columns

    # -- relations -------------------------------------------------------------------------------------------------

    def relation(self) -> tuple[str, Columns]:
        """Something that stands in FROM, and the columns it brings into sight."""
        rng = self.rng
        if self.budget > 1 and rng.random() < 0.45:
            return self._join()
        return self._single()

    def _single(self) -> tuple[str, Columns]:
        rng = self.rng
        self._names += 1
        alias = f"r{self._names}"
        roll = rng.random()
        if self._common and roll < 0.5:
            return f"c AS {alias}", [(f"{alias}.{n}", k) for n, k in self._common["c"]]
        if self.budget > 0 and roll < 0.2:
            make = self._set_operation if rng.random() < 0.3 else self.select
            sql, columns = make()
            return f"({sql}) AS {alias}", [(f"{alias}.{n}", k) for n, k in columns]
        if roll < 0.25:
            rows = ", ".join(f"({rng.choice(['NULL', '1', '2'])}, '{rng.choice('ab')}')" for _ in range(3))
            return f"(VALUES (3, 'z'), {rows}) AS {alias}(k, s)", [(f"{alias}.k", "int"), (f"{alias}.s", "text")]
        name = rng.choice(sorted(self.tables))
        scope = [(f"{alias}.{n}", k) for n, k in self.tables[name]]
        source = f"{name} AS {alias}"
        arrays = [n for n, k in scope if k == "array"]
        if arrays and rng.random() < 0.4:
            outer = rng.choice(["", "OUTER "])
            if rng.random() < 0.5:
                source += f" LATERAL VIEW {outer}explode({arrays[0]}) x{alias} AS x{alias}"
                scope = [*scope, (f"x{alias}", "int")]
            else:
                source += f" LATERAL VIEW {outer}posexplode({arrays[0]}) x{alias} AS p{alias}, x{alias}"
                scope = [*scope, (f"p{alias}", "int"), (f"x{alias}", "int")]
        return source, scope

    def _join(self) -> tuple[str, Columns]:
        rng = self.rng
        self.budget -= 1
        left, mine = self._single()
        while "LATERAL" in left:
            left, mine = self._single()
        right, theirs = self._single()
        while "LATERAL" in right:
            right, theirs = self._single()
        kind = rng.choice(["INNER", "INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "CROSS"])
        if kind == "CROSS":
            return f"{left} CROSS JOIN {right}", mine + theirs
        if kind in ("INNER", "LEFT", "FULL") and rng.random() < 0.1:
            names = [{sql.rsplit(".", 1)[1] for sql, k in side if k == "int"} for side in (mine, theirs)]
            both = sorted(names[0] & names[1])
            if both and all("." in sql for sql, _ in mine + theirs):
                name = rng.choice(both)
                rest = [(sql, k) for sql, k in mine + theirs if sql.rsplit(".", 1)[1] != name]
                return f"{left} {kind} JOIN {right} USING ({name})", [(name, "int"), *rest]
        on = self._on(mine, theirs)
        scope = mine if kind in ("LEFT SEMI", "LEFT ANTI") else mine + theirs
        return f"{left} {kind} JOIN {right} ON {on}", scope

    def _on(self, mine: Columns, theirs: Columns) -> str:
        rng = self.rng
        parts = []
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            kind = rng.choice(["int", "int", "text", "decimal", "date", "double", "long"])
            depth = rng.choice([0, 0, 0, 1])
            a = Expressions(rng, mine).of(kind, depth=depth, column=True)
            b = Expressions(rng, theirs).of(kind, depth=depth, column=True)
            parts.append(f"{a} {rng.choice(['=', '=', '=', '<=>'])} {b}")
        if not parts or rng.random() < 0.3:
            parts.append(Expressions(rng, mine + theirs).of("bool", depth=2))
        return " AND ".join(parts)

    # -- conditions ------------------------------------------------------------------------------------------------

    def condition(self, scope: Columns) -> str:
        """A condition of WHERE, with subqueries now and then."""
        rng = self.rng
        made = Expressions(rng, scope)
        plain = made.of("bool", depth=2)
        if self.budget <= 0 or rng.random() < 0.6:
            return plain
        self.budget -= 1
        self._names += 1
        alias, name = f"q{self._names}", rng.choice(sorted(self.tables))
        inner = [(f"{alias}.{n}", k) for n, k in self.tables[name]]
        below = Expressions(rng, inner)
        where = [below.of("bool", depth=1)] if rng.random() < 0.5 else []
        if rng.random() < 0.6:
            kind = rng.choice(["int", "text", "decimal", "date"])
            where.append(f"{below.of(kind, depth=0, column=True)} = {made.of(kind, depth=0, column=True)}")
        rest = f" FROM {name} AS {alias}" + (f" WHERE {' AND '.join(where)}" if where else "")
        kind = rng.choice(["int", "text", "decimal", "long"])
        mine = made.of(kind, depth=0, column=True)
        theirs = below.of(kind, depth=0, column=True)
        some = rng.choice(
            [
                f"EXISTS (SELECT 1{rest})",
                f"NOT EXISTS (SELECT 1{rest})",
                f"{mine} IN (SELECT {theirs}{rest})",
                f"{mine} NOT IN (SELECT {theirs}{rest})",
                f"{mine} >= (SELECT max({theirs}){rest})",
                f"(SELECT count({theirs}){rest}) > {rng.randint(0, 2)}",
            ]
        )
        return rng.choice([some, f"({some} AND {plain})", f"({some} OR {plain})", f"NOT ({some})"])
