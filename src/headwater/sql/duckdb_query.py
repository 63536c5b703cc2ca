"""A plan as one DuckDB query that gives Spark's rows.

Columns are called by their keys all the way up, so every name in the query is unique and correlated subqueries need no
care; only the outermost SELECT renames them (Spark allows two columns of one name, so the executor names them by
position). A node becomes a `Block`, and nodes share a block where SQL's own order of clauses allows it: a join of joins
is one FROM, and ORDER BY and LIMIT stand in the outermost SELECT, where DuckDB keeps their order.

What differs from the plain SQL:
- floats are guarded once, in the scan (see `duckdb_form`); as keys of groups and of DISTINCT, -0.0 becomes 0.0, as in
  Spark;
- a WHERE whose later parts may fail keeps the order of its parts (DuckDB tries them in any order);
- ORDER BY says where nulls go.

An executor registers each `Scan.relation` under its name (or gives its SQL) and leaves DuckDB's defaults as they are
(``scalar_subquery_error_on_multiple_rows`` on, time zone UTC); the answer's types are then cast to ``plan.schema``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from headwater.sql.casts import raise_form
from headwater.sql.demands import keys_read
from headwater.sql.duckdb_block import Block, named, unique
from headwater.sql.duckdb_expressions import Expressions, zero_free
from headwater.sql.duckdb_form import float_guard
from headwater.sql.nodes import (
    Call,
    Column,
    Node,
    Refused,
)
from headwater.sql.plan import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    Limit,
    Match,
    Named,
    Plan,
    Project,
    Recursion,
    Reference,
    Scan,
    SetOperation,
    Single,
    Sort,
    Values,
    Window,
    With,
)
from headwater.sql.quoting import quote_identifier
from headwater.sql.rewriting.lateral import is_lateral
from headwater.sql.sinking import conjuncts, guards, sunk
from headwater.sql.types import family

__all__ = ["to_duckdb"]

_JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
    "cross": "CROSS JOIN",
}
_COPIES, _LEVEL = "copies", "level"


def to_duckdb(plan: Plan, relations: Callable[[Scan], str] | None = None) -> str:
    """DuckDB's SQL of a plan; ``relations`` gives the SQL of each scan's relation, by default its quoted
    `Scan.relation`.

    >>> from headwater.sql.plan import Attribute
    >>> scan = Scan("t", None, None, (Attribute("a", "a#1", pa.int32()),))
    >>> to_duckdb(Filter(scan, Column(None, ("a#1",), pa.bool_())))
    'SELECT "a#1" AS "a" FROM (SELECT "a" AS "a#1" FROM "t") AS r1 WHERE "a#1"'
    """
    writer = _Writer(plan, relations or (lambda scan: quote_identifier(scan.relation)))
    block = writer.write(plan)
    names = unique([a.name for a in plan.output])
    return block.renamed(plan.output, names).sql(plan)


@dataclass
class _Writer:
    plan: Plan
    relations: Callable[[Scan], str]
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    read: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.expressions = Expressions(self.whole)
        self.read = keys_read(self.plan)

    def write(self, plan: Plan) -> Block:
        return _WRITERS[type(plan)](self, plan)

    def whole(self, plan: Plan) -> str:
        """A plan as a full SELECT."""
        return self.write(plan).sql(plan)

    def source(self, plan: Plan) -> Block:
        """A plan as a FROM without anything else."""
        block = self.write(plan)
        return block if block.is_source else self.wrapped(plan, block)

    def wrapped(self, plan: Plan, block: Block) -> Block:
        if block.select is None:
            # A scan below gives only the columns that somebody reads.
            block = replace(
                block, select=tuple((quote_identifier(a.key), a.key) for a in plan.output if a.key in self.read)
            )
        return Block(f"({block.sql(plan)}) AS r{next(self.numbers)}")

    def scan(self, plan: Scan) -> Block:
        columns = [a for a in plan.columns if a.key in self.read] or list(plan.columns[:1])
        listed = []
        for a in columns:
            stored = quote_identifier(a.name)
            listed.append(named(float_guard(stored, a.dtype) if family(a.dtype) == "float" else stored, a.key))
        relation = self.relations(plan)
        return Block(f"(SELECT {', '.join(listed)} FROM {relation}) AS r{next(self.numbers)}")

    def values(self, plan: Values) -> Block:
        if not plan.columns:
            return Block("")
        rows = ", ".join("(" + ", ".join(map(self.expressions.render, row)) + ")" for row in plan.rows)
        names = ", ".join(quote_identifier(a.key) for a in plan.columns)
        return Block(f"(VALUES {rows}) AS r{next(self.numbers)}({names})")

    def reference(self, plan: Reference) -> Block:
        pairs = list(zip(plan.keys, plan.columns, strict=True))
        weights = self.expressions.weights
        weights.update((a.key, weights[k]) for k, a in pairs if k in weights)
        listed = ", ".join(named(quote_identifier(k), a.key) for k, a in pairs)
        return Block(f"(SELECT {listed} FROM {quote_identifier(plan.name)}) AS r{next(self.numbers)}")

    def with_(self, plan: With) -> Block:
        parts = [f"{quote_identifier(name)} AS {self._definition(inner)}" for name, inner in plan.definitions]
        block = self.write(plan.child)
        if block.with_:
            block = self.wrapped(plan.child, block)
        word = "WITH RECURSIVE" if any(isinstance(p, Recursion) for _, p in plan.definitions) else "WITH"
        return replace(block, with_=f"{word} {', '.join(parts)} ")

    def _definition(self, plan: Plan) -> str:
        if not isinstance(plan, Recursion):
            return f"({self.whole(plan)})"
        sides = []
        for child in (plan.base, plan.step):
            block = self.source(child)
            pairs = zip(child.output, plan.columns, strict=True)
            sides.append(
                replace(block, select=tuple((quote_identifier(a.key), out.key) for a, out in pairs)).sql(child)
            )
        base, step = sides
        if plan.levels is None or not plan.every:
            return f"(({base}) UNION {'ALL ' if plan.every else ''}({step}))"
        # Each row knows its level, so that a recursion without an end stops where Spark's does.
        level, limit = quote_identifier(_LEVEL), raise_form("the recursion has more levels than MAX RECURSION LEVEL")
        last = f"(SELECT max({level}) + 1 AS {level} FROM {quote_identifier(plan.name)}) AS r{next(self.numbers)}"
        checked = f"CASE WHEN {level} > {plan.levels} THEN {limit} ELSE {level} END"
        columns = ", ".join(quote_identifier(a.key) for a in plan.columns)
        first = f"SELECT {columns}, 1 AS {level} FROM ({base}) AS r{next(self.numbers)}"
        more = f"SELECT {columns}, {checked} FROM ({step}) AS r{next(self.numbers)} CROSS JOIN {last}"
        return f"(({first}) UNION ALL ({more}))"

    def project(self, plan: Project) -> Block:
        block = self.write(plan.child)
        passes = all(isinstance(i.node, Column) and i.node.path == (i.attribute.key,) for i in plan.items)
        if passes and block.select is not None and not block.distinct and not block.group:
            by_key = {key: (sql, key) for sql, key in block.select}
            wanted = {i.attribute.key for i in plan.items}
            # A list that is unnested decides how many rows there are, whether or not its elements are read.
            unnests = any("unnest(" in sql for sql, key in block.select if key not in wanted)
            if by_key.keys() >= wanted and not unnests:
                return replace(block, select=tuple(by_key[i.attribute.key] for i in plan.items))
        if not block.filters or (not block.source and plan.child.output):
            block = self.wrapped(plan.child, block)
        items = tuple(map(self._computed, plan.items))
        return replace(block, select=items)

    def _computed(self, item: Named) -> tuple[str, str]:
        """An expression under its key; what stands above it knows how long it is."""
        sql, key = self.expressions.render(item.node), item.attribute.key
        self.expressions.weights.note(key, item.node, sql)
        return sql, key

    def filter(self, plan: Filter) -> Block:
        better = sunk(plan)
        if not isinstance(better, Filter):
            return self.write(better)
        block = self.write(better.child)
        if not block.filters:
            block = self.wrapped(better.child, block)
        known = guards(better.child) if better.condition.fallible else []
        return replace(block, where=(*block.where, *self._conditions(better.condition, known)))

    def _conditions(self, condition: Node, known: Sequence[Node] = ()) -> list[str]:
        """The parts of a conjunction; one that may fail waits for what is known, and for those to its left."""
        out: list[str] = []
        before = [self.expressions.render(k) for k in known]
        for part in conjuncts(condition):
            sql = self.expressions.condition(part)
            if part.fallible and before:
                steps = " ".join(f"WHEN NOT {b} THEN FALSE" for b in before)
                out.append(f"(CASE {steps} ELSE {sql} END)")
            else:
                out.append(sql)
            before.append(sql)
        return out

    def join(self, plan: Join) -> Block:
        left, right = self.source(plan.left), self.source(plan.right)
        if not left.source or not right.source:
            raise Refused("a join with a SELECT that has no FROM", "give it a column")
        nested = f"({right.source})" if isinstance(plan.right, Join) else right.source
        if is_lateral(plan):
            nested = f"LATERAL {self.wrapped(plan.right, right).source}"
        on = "" if plan.condition is None else f" ON {' AND '.join(self._conditions(plan.condition))}"
        return Block(f"{left.source} {_JOINS[plan.kind]} {nested}{on}")

    def aggregate(self, plan: Aggregate) -> Block:
        block = self.write(plan.child)
        if not block.filters:
            block = self.wrapped(plan.child, block)
        keys = [(zero_free(sql, k.node.dtype), key) for k in plan.keys for sql, key in (self._computed(k),)]
        given = [(self._given(a.node), a.attribute.key) for a in plan.aggregates]
        group = ""
        if plan.sets is not None:
            columns = [sql for sql, _ in keys]
            sets = ", ".join("(" + ", ".join(columns[i] for i in s) + ")" for s in plan.sets)
            group = f"GROUP BY GROUPING SETS ({sets})"
            if keys and () in plan.sets:
                # Of no rows Spark has no groups, not even that of all rows.
                group += " HAVING count(*) > 0"
        elif keys:
            group = "GROUP BY " + ", ".join(str(i + 1) for i in range(len(keys)))
        elif not given:
            group = "GROUP BY ()"
        return replace(block, select=(*keys, *given), group=group)

    def _given(self, node: Node) -> str:
        if isinstance(node, Call) and node.op == "grouping":
            columns = ", ".join(zero_free(self.expressions.render(a), a.dtype) for a in node.args)
            return f"CAST(grouping({columns}) AS {'TINYINT' if node.dtype == pa.int8() else 'BIGINT'})"
        return self.expressions.render(node)

    def window(self, plan: Window) -> Block:
        block = self.write(plan.child)
        if not block.filters:
            block = self.wrapped(plan.child, block)
        passed = tuple((quote_identifier(a.key), a.key) for a in plan.child.output if a.key in self.read)
        items = tuple((self.expressions.render(i.node), i.attribute.key) for i in plan.items)
        return replace(block, select=(*passed, *items))

    def generate(self, plan: Generate) -> Block:
        block = self.write(plan.child)
        if not block.filters:
            block = self.wrapped(plan.child, block)
        source = self.expressions.render(plan.source)
        passed = [(quote_identifier(a.key), a.key) for a in plan.child.output if a.key in self.read]
        # A null and an empty list have no elements; OUTER gives such a row one null instead.
        elements = f"CASE WHEN len({source}) > 0 THEN {source} ELSE [NULL] END" if plan.outer else source
        items = [(f"unnest({elements})", plan.columns[0].key)]
        if plan.position is not None:
            # Both lists are unnested side by side.
            places = f"range(CAST(len({source}) AS BIGINT))"
            if plan.outer:
                places = f"CASE WHEN len({source}) > 0 THEN {places} ELSE [NULL] END"
            items.insert(0, (f"CAST(unnest({places}) AS INTEGER)", plan.position.key))
        return replace(block, select=(*passed, *items))

    def distinct(self, plan: Distinct) -> Block:
        block = self.source(plan.child)
        items = tuple((zero_free(quote_identifier(a.key), a.dtype), a.key) for a in plan.output)
        return replace(block, select=items, distinct=True)

    def single(self, plan: Single) -> Block:
        block = self.source(plan.child)
        keys = ", ".join(zero_free(quote_identifier(a.key), a.dtype) for a in plan.keys)
        number = f"count(*) OVER ({f'PARTITION BY {keys}' if keys else ''})"
        listed = tuple((quote_identifier(a.key), a.key) for a in plan.output if a.key in self.read)
        counted = f"({replace(block, select=(*listed, (number, _COPIES))).sql(plan)}) AS r{next(self.numbers)}"
        raised = raise_form("more than one row returned by a subquery used as an expression")
        return Block(counted, where=(f"(CASE WHEN {quote_identifier(_COPIES)} > 1 THEN {raised} ELSE 1 END = 1)",))

    def match(self, plan: Plan) -> Block:
        raise Refused("MATCH_RECOGNIZE at this place", "compute it in a query or a view of its own")

    def sort(self, plan: Sort) -> Block:
        # Over a source, so that ORDER BY still finds its keys when the outermost SELECT renames the columns.
        block = self.source(plan.child)
        columns = tuple((quote_identifier(a.key), a.key) for a in plan.output)
        order = "ORDER BY " + ", ".join(map(self.expressions.ordering, plan.order))
        return replace(block, select=columns, order=order)

    def limit(self, plan: Limit) -> Block:
        block = self.write(plan.child)
        if block.limit:
            block = self.wrapped(plan.child, block)
        count = "" if plan.count is None else f"LIMIT {plan.count}"
        return replace(block, limit=" ".join(p for p in (count, f"OFFSET {plan.offset}" if plan.offset else "") if p))

    def set_operation(self, plan: SetOperation) -> Block:
        sides = []
        for child in (plan.left, plan.right):
            block = self.source(child)
            clean = plan.kind != "union"
            self.expressions.weights.pass_on(child.output, plan.columns)
            items = tuple(
                (zero_free(quote_identifier(a.key), a.dtype) if clean else quote_identifier(a.key), out.key)
                for a, out in zip(child.output, plan.columns, strict=True)
            )
            sides.append("(" + replace(block, select=items).sql(child) + ")")
        word = plan.kind.upper() + (" ALL" if plan.every else "")
        return Block(f"({f' {word} '.join(sides)}) AS r{next(self.numbers)}")


_WRITERS: dict[type[Plan], Callable[[_Writer, Plan], Block]] = {
    Scan: _Writer.scan,  # type: ignore[dict-item]
    Values: _Writer.values,  # type: ignore[dict-item]
    Reference: _Writer.reference,  # type: ignore[dict-item]
    With: _Writer.with_,  # type: ignore[dict-item]
    Project: _Writer.project,  # type: ignore[dict-item]
    Filter: _Writer.filter,  # type: ignore[dict-item]
    Join: _Writer.join,  # type: ignore[dict-item]
    Aggregate: _Writer.aggregate,  # type: ignore[dict-item]
    Window: _Writer.window,  # type: ignore[dict-item]
    Generate: _Writer.generate,  # type: ignore[dict-item]
    Distinct: _Writer.distinct,  # type: ignore[dict-item]
    Sort: _Writer.sort,  # type: ignore[dict-item]
    Limit: _Writer.limit,  # type: ignore[dict-item]
    SetOperation: _Writer.set_operation,  # type: ignore[dict-item]
    Single: _Writer.single,  # type: ignore[dict-item]
    Match: _Writer.match,
}
