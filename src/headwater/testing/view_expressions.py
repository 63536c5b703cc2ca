"""Random expressions of a wanted type over columns in sight, none of which can fail."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["Expressions"]

_CONSTANTS = {
    "int": ["0", "1", "2", "-3", "7", "NULL"],
    "long": ["0L", "1L", "5L", "NULL"],
    "text": ["''", "'a'", "'AB'", "'a text that does not fit a slot'", "NULL"],
    "double": ["0.0D", "-0.0D", "0.25D", "2.0D", "NULL"],
    "decimal": ["CAST(1.10 AS DECIMAL(8,2))", "CAST(0 AS DECIMAL(8,2))", "NULL"],
    "date": ["DATE'2024-02-29'", "DATE'2023-01-24'", "NULL"],
    "bool": ["TRUE", "FALSE", "NULL"],
    "moment": ["TIMESTAMP_NTZ'2024-02-29 23:59:01'", "NULL"],
}
_CASTS = {
    "int": "INT",
    "long": "BIGINT",
    "text": "STRING",
    "double": "DOUBLE",
    "decimal": "DECIMAL(8,2)",
    "date": "DATE",
    "bool": "BOOLEAN",
    "moment": "TIMESTAMP_NTZ",
}
_ORDERED = ("int", "long", "text", "double", "decimal", "date", "moment")


@dataclass
class Expressions:
    """Draws expressions over ``scope``: (SQL of a column, type)."""

    rng: random.Random
    scope: list[tuple[str, str]]

    def of(self, kind: str, *, depth: int = 2, column: bool = False) -> str:
        """An expression of a type; with ``column`` one that reads a column if there is any of the type."""
        rng = self.rng
        columns = [sql for sql, k in self.scope if k == kind]
        if depth <= 0 or rng.random() < 0.35:
            if columns and (column or rng.random() < 0.8):
                return rng.choice(columns)
            if depth <= 0:
                return f"CAST({rng.choice(_CONSTANTS[kind])} AS {_CASTS[kind]})"
        made = getattr(self, f"_{kind}")(depth - 1)
        assert isinstance(made, str)
        return made

    def _choice(self, kind: str, depth: int) -> str:
        rng = self.rng
        a, b, c = self.of(kind, depth=depth), self.of(kind, depth=depth), self.of("bool", depth=depth)
        return rng.choice(
            [f"coalesce({a}, {b})", f"CASE WHEN {c} THEN {a} ELSE {b} END", f"nullif({a}, {b})", f"if({c}, {a}, {b})"]
        )

    def _int(self, depth: int) -> str:
        rng = self.rng
        a, b = self.of("int", depth=depth), self.of("int", depth=depth)
        small = f"(({a}) % 5)"
        return rng.choice(
            [
                f"({small} + ({b}) % 3)",
                f"({small} * (({b}) % 4))",
                f"abs({small})",
                f"length({self.of('text', depth=depth)})",
                f"day({self.of('date', depth=depth)})",
                f"CAST({self.of('decimal', depth=depth)} AS INT)",
                f"greatest({a}, {b})",
                self._choice("int", depth),
            ]
        )

    def _long(self, depth: int) -> str:
        rng = self.rng
        a, b = self.of("long", depth=depth), self.of("int", depth=depth)
        return rng.choice([f"CAST({b} AS BIGINT)", f"(({a}) % 7 - 1L)", f"least({a}, 3L)", self._choice("long", depth)])

    def _text(self, depth: int) -> str:
        rng = self.rng
        a, b = self.of("text", depth=depth), self.of("text", depth=depth)
        return rng.choice(
            [
                f"upper({a})",
                f"concat({a}, '-', {b})",
                f"substr({a}, 2, 3)",
                f"CAST({self.of('int', depth=depth)} AS STRING)",
                f"trim(replace({a}, 'a', ' '))",
                self._choice("text", depth),
            ]
        )

    def _double(self, depth: int) -> str:
        rng = self.rng
        a = self.of("double", depth=depth)
        b = self.of("int", depth=depth)
        return rng.choice([f"(-({a}))", f"CAST({b} AS DOUBLE)", f"abs({a})", self._choice("double", depth)])

    def _decimal(self, depth: int) -> str:
        rng = self.rng
        a = self.of("decimal", depth=depth)
        return rng.choice(
            [
                f"CAST((({self.of('int', depth=depth)}) % 9) AS DECIMAL(8,2))",
                f"CAST(round({a}, 0) AS DECIMAL(8,2))",
                f"abs({a})",
                self._choice("decimal", depth),
            ]
        )

    def _date(self, depth: int) -> str:
        a = self.of("date", depth=depth)
        days = f"(({self.of('int', depth=depth)}) % 3)"
        return self.rng.choice([f"date_add({a}, {days})", f"last_day({a})", self._choice("date", depth)])

    def _moment(self, depth: int) -> str:
        a = self.of("moment", depth=depth)
        unit = self.rng.choice(["'minute'", "'day'"])
        return self.rng.choice(
            [
                f"({a} + INTERVAL {self.rng.randint(1, 90)} SECONDS)",
                f"CAST(date_trunc({unit}, {a}) AS TIMESTAMP_NTZ)",
                f"CAST({self.of('date', depth=depth)} AS TIMESTAMP_NTZ)",
                self._choice("moment", depth),
            ]
        )

    def _bool(self, depth: int) -> str:
        rng = self.rng
        kind = rng.choice(_ORDERED)
        a, b = self.of(kind, depth=depth, column=True), self.of(kind, depth=depth)
        p, q = (self.of("bool", depth=depth - 1) if depth > 0 else "TRUE" for _ in range(2))
        return rng.choice(
            [
                f"({a} {rng.choice(['=', '<', '<=', '>', '>=', '<>', '<=>'])} {b})",
                f"({a} {rng.choice(['=', '<', '<=', '>', '>=', '<>', '<=>'])} {b})",
                f"({a} IS {rng.choice(['', 'NOT '])}NULL)",
                f"({a} {rng.choice(['', 'NOT '])}IN ({b}, {self.of(kind, depth=0)}))",
                f"({a} BETWEEN {b} AND {self.of(kind, depth=0)})",
                f"({self.of('text', depth=0, column=True)} LIKE '{rng.choice(['a%', '%b', '_', '%'])}')",
                f"({p} AND {q})",
                f"({p} OR {q})",
                f"(NOT {p})",
            ]
        )

    # -- many rows -------------------------------------------------------------------------------------------------

    def aggregate(self, kind: str, *, exactly: bool = False) -> tuple[str, str]:
        """An aggregate of a type; where it need not be exactly of that, also of an array."""
        rng = self.rng
        if not exactly and rng.random() < 0.15:
            return self._list(), "array"
        sql = rng.choice(self._choosing(kind) if rng.random() < 0.3 else self._aggregates(kind))
        if rng.random() < 0.2:
            head, bracket, tail = sql.partition(" )")
            sql = f"{head} ) FILTER (WHERE {self.of('bool', depth=1)}){tail}" if bracket else sql
        return sql.replace(" )", ")"), kind

    def _aggregates(self, kind: str) -> list[str]:
        """Calls of a type; the call that a FILTER may follow is closed by a bracket with a blank before it."""
        rng = self.rng
        own = self.of(kind, depth=1, column=True)
        a, n = self.of("int", depth=1, column=True), self.of("long", depth=0, column=True)
        once = rng.choice(["", "", "DISTINCT "])
        other = self.of(rng.choice(_ORDERED), depth=1, column=True)
        found = {
            "int": [f"CAST(count({once}{other} ) AS INT)", f"CAST(sum({once}{a} ) AS INT)"],
            "long": [
                "count(* )",
                f"count({once}{other} )",
                f"sum({once}{a} )",
                f"sum({n} )",
                f"count(DISTINCT {a}, {other} )",
            ],
            "text": [f"listagg({once}{own}, ',') WITHIN GROUP (ORDER BY {own} )"],
            "double": [
                f"sum({once}{own} )",
                f"avg({own} )",
                f"avg({once}{a} )",
                f"median({a} )",
                f"percentile({a}, 0.25 )",
                f"round(stddev({a} ), 6)",
                f"round(var_pop({a} ), 6)",
            ],
            "decimal": [f"CAST(avg({own} ) AS DECIMAL(8,2))", f"CAST(sum({once}{own} ) AS DECIMAL(8,2))"],
            "date": [],
            "moment": [],
            "bool": [f"bool_or({own} )", f"bool_and({own} )", "(count(* ) > 1)", f"(count_if({own} ) = 1)"],
        }[kind]
        return [*found, f"max({own} )", f"min({own} )"]

    def _list(self, over: str = "") -> str:
        function = self.rng.choice(["array_agg", "collect_list", "collect_set"])
        sql = f"{function}({self.of('int', depth=1, column=True)}){over}"
        return self.rng.choice([f"sort_array({sql})", sql])

    def _choosing(self, kind: str) -> list[str]:
        """Calls of a type whose answer depends on the order of rows; a view makes the same choice everywhere."""
        rng = self.rng
        own = self.of(kind, depth=1, column=True)
        by = self.of(rng.choice(_ORDERED), depth=rng.choice([0, 1]), column=True)
        found = [f"{f}({own} )" for f in ("any_value", "first", "first_value", "last", "last_value")]
        found += [f"{f}({own}, TRUE )" for f in ("any_value", "first", "last")]
        found += [f"{f}({own}, {by} )" for f in ("max_by", "min_by", "max_by", "min_by")]
        found += [f"{f}({own}, {own} )" for f in ("max_by", "min_by")]
        if kind == "text":
            once = rng.choice(["", "", "DISTINCT "])
            # Of different values the order has to be their own.
            key = own if once else by
            found += [f"{f}({once}{own}, ',' )" for f in ("listagg", "string_agg")]
            ordered = f"{key}{rng.choice(['', ' DESC', ' NULLS LAST'])}"
            found += [f"{f}({once}{own}, '/') WITHIN GROUP (ORDER BY {ordered} )" for f in ("listagg", "string_agg")]
        if kind == "double":
            direction = rng.choice(["", " DESC"])
            shares = [
                f"{f}(0.5) WITHIN GROUP (ORDER BY {own}{direction} )" for f in ("percentile_cont", "percentile_disc")
            ]
            found += [*shares, f"approx_percentile({own}, 0.25 )", f"percentile_approx({own}, 0.75 )"]
        else:
            found += [f"mode({own} )", f"mode({own} )"]
        return found

    def window(self) -> tuple[str, str]:
        """A window function, and its type."""
        rng = self.rng
        kind = rng.choice(_ORDERED)
        value = self.of(kind, depth=1, column=True)
        number = self.of("int", depth=1, column=True)
        by = ", ".join(
            self.of(rng.choice(_ORDERED), depth=rng.choice([0, 1]), column=True) for _ in range(rng.randint(0, 2))
        )
        partition = f"PARTITION BY {by} " if by else ""
        ordering = rng.choice(["int", "date", "decimal", "text", "double", "moment"])
        key = self.of(ordering, depth=rng.choice([0, 0, 1]), column=True)
        order = f"ORDER BY {key}{rng.choice(['', ' DESC', ' NULLS LAST'])}"
        roll = rng.random()
        if rng.random() < 0.25:  # ties are then of rows that are the same
            order = "ORDER BY " + ", ".join(sql for sql, k in self.scope if k != "array")
            ordering = "several"
        if roll < 0.25:
            function, kind = rng.choice(
                [
                    ("row_number()", "int"),
                    ("rank()", "int"),
                    ("dense_rank()", "int"),
                    ("percent_rank()", "double"),
                    ("cume_dist()", "double"),
                    ("ntile(2)", "int"),
                ]
            )
            return f"{function} OVER ({partition}{order})", kind
        if roll < 0.4:
            default = rng.choice(["", f", {self.of(kind, depth=0)}"])
            function = f"{rng.choice(['lag', 'lead'])}({value}, {rng.randint(0, 2)}{default})"
            return f"{function} OVER ({partition}{order})", kind
        if roll < 0.7:
            if ordering != "several" and rng.random() < 0.3:  # peers have the same
                value, kind = key, ordering
            return self._place(value, partition, order, ordering), kind
        if roll < 0.8:
            if rng.random() < 0.25:
                return self._list(f" OVER ({partition})"), "array"
            call = rng.choice([c for c in self._choosing(kind) if "WITHIN" not in c and "DISTINCT" not in c])
            return f"{call.replace(' )', ')')} OVER ({partition})", kind
        function, kind = rng.choice(
            [
                (f"sum({number})", "long"),
                (f"count({value})", "long"),
                ("count(*)", "long"),
                (f"min({value})", kind),
                (f"max({value})", kind),
                (f"avg({number})", "double"),
                (f"sum({self.of('double', depth=0, column=True)})", "double"),
            ]
        )
        return f"{function} OVER ({partition}{rng.choice(['', self._framed(order, ordering)])})", kind

    def _place(self, value: str, partition: str, order: str, ordering: str) -> str:
        """The value of one row of a frame."""
        rng = self.rng
        named = rng.choice(["any_value", "first", "first_value", "last", "last_value", "nth_value", "nth_value"])
        call = f"{named}({value}, {rng.randint(1, 3)})" if named == "nth_value" else f"{named}({value})"
        skip = rng.choice(["", "", " IGNORE NULLS"])
        frame = rng.choice(["", order, self._framed(order, ordering), self._framed(order, ordering)])
        return f"{call}{skip} OVER ({partition}{frame})"

    def rank(self) -> str:
        """A rank within a partition."""
        function = self.rng.choice(["row_number", "rank", "dense_rank"])
        by = self.of(self.rng.choice(_ORDERED), depth=0, column=True)
        order = self.of(self.rng.choice(_ORDERED), depth=1, column=True)
        return f"{function}() OVER (PARTITION BY {by} ORDER BY {order}{self.rng.choice(['', ' DESC'])})"

    def _framed(self, order: str, ordering: str) -> str:
        rng = self.rng
        frames = [
            "",
            "",
            " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        ]
        if ordering == "int":
            frames += 2 * [" RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING"]
        if ordering == "decimal":
            frames += 2 * [" RANGE BETWEEN 1.5 PRECEDING AND 10 FOLLOWING"]
        if ordering == "moment":
            frames.append(" RANGE BETWEEN INTERVAL 1 SECOND PRECEDING AND INTERVAL 40 SECONDS FOLLOWING")
        if ordering == "date":
            frames.append(" RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW")
        return order + rng.choice(frames)
