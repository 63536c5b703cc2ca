"""A plan as one DataFusion query that gives Spark's rows.

Columns are called by their keys all the way up, as in `headwater.sql.duckdb_query`, whose `Block` this shares: a node
becomes a block, and nodes share one where SQL's own order of clauses allows it.

What differs from the plain SQL:
- floats have one NaN from the scan on; as keys, -0.0 becomes 0.0 (see `spelling`);
- a condition whose later parts may fail keeps the order of its parts, those of filters below it too (see `sinking`);
- INTERSECT ALL and EXCEPT ALL forget how often a row is there: equal rows are numbered first, and then the rows are a
  set.

An executor names each scan's relation, enables DataFusion's Spark functions, sets ``enable_ansi_mode`` and the time
zone UTC, and casts the answer to ``plan.schema``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from headwater.sql.datafusion.array_forms import size
from headwater.sql.datafusion.expression import Expressions
from headwater.sql.datafusion.spelling import lazy, one_nan, refusal, type_name, zero_free
from headwater.sql.demands import keys_read
from headwater.sql.duckdb_block import Block, named, unique
from headwater.sql.nodes import Call, Column, Node, Refused
from headwater.sql.plan import (
    Aggregate,
    Attribute,
    Distinct,
    Filter,
    Generate,
    Join,
    Limit,
    Named,
    Plan,
    Project,
    Recursion,
    Reference,
    Scan,
    SetOperation,
    Sort,
    Values,
    Window,
    With,
)
from headwater.sql.quoting import quote_identifier
from headwater.sql.rewriting.lateral import is_lateral
from headwater.sql.sinking import conjuncts, guards, sunk
from headwater.sql.types import family

__all__ = ["to_datafusion"]

_JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
    "cross": "CROSS JOIN",
}
_COPY = "row#copy"


def to_datafusion(plan: Plan, relations: Callable[[Scan], str] | None = None) -> str:
    """DataFusion's SQL of a plan; ``relations`` gives the SQL of each scan's relation, by default its quoted
    `Scan.relation`.

    >>> scan = Scan("t", None, None, (Attribute("a", "a#1", pa.int32()),))
    >>> to_datafusion(Filter(scan, Column(None, ("a#1",), pa.bool_())))
    'SELECT "a#1" AS "a" FROM (SELECT "a" AS "a#1" FROM "t") AS r1 WHERE "a#1"'
    """
    writer = _Writer(plan, relations or (lambda scan: quote_identifier(scan.relation)))
    block = writer.write(plan)
    return block.renamed(plan.output, unique([a.name for a in plan.output])).sql(plan)


def _passing(attributes: tuple[Attribute, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((quote_identifier(a.key), a.key) for a in attributes)


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
        writer = _WRITERS.get(type(plan))
        if writer is None:
            raise refusal("WITH RECURSIVE" if isinstance(plan, Recursion) else plan.line())
        return writer(self, plan)

    def whole(self, plan: Plan) -> str:
        """A plan as a full SELECT."""
        return self.write(plan).sql(plan)

    def source(self, plan: Plan) -> Block:
        """A plan as a FROM without anything else."""
        block = self.write(plan)
        return block if block.is_source else self.wrapped(plan, block)

    def filtered(self, plan: Plan) -> Block:
        """A plan as a FROM and a WHERE."""
        block = self.write(plan)
        return block if block.filters else self.wrapped(plan, block)

    def wrapped(self, plan: Plan, block: Block) -> Block:
        return Block(f"({block.sql(plan)}) AS r{next(self.numbers)}")

    def scan(self, plan: Scan) -> Block:
        columns = [a for a in plan.columns if a.key in self.read] or list(plan.columns[:1])
        listed = []
        for a in columns:
            stored = quote_identifier(a.name)
            listed.append(named(one_nan(stored, a.dtype) if family(a.dtype) == "float" else stored, a.key))
        return Block(f"(SELECT {', '.join(listed)} FROM {self.relations(plan)}) AS r{next(self.numbers)}")

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
        parts = [f"{quote_identifier(name)} AS ({self.whole(inner)})" for name, inner in plan.definitions]
        block = self.write(plan.child)
        if block.with_:
            block = self.wrapped(plan.child, block)
        return replace(block, with_=f"WITH {', '.join(parts)} ")

    def project(self, plan: Project) -> Block:
        block = self.write(plan.child)
        if isinstance(plan.child, Aggregate) and not block.group and block.select is not None:
            # One SELECT with its aggregates: DataFusion cannot join a correlated subquery of two.
            binds = self.expressions.binds
            with self.expressions.inlining({key: sql for sql, key in block.select}):
                items = tuple((self.expressions.render(i.node), i.attribute.key) for i in plan.items)
            if self.expressions.binds == binds:  # there are no aggregates inside a lambda
                return replace(block, select=items)
        passes = all(isinstance(i.node, Column) and i.node.path == (i.attribute.key,) for i in plan.items)
        if passes and block.select is not None and not block.distinct and not block.group:
            by_key = {key: (sql, key) for sql, key in block.select}
            if by_key.keys() >= {i.attribute.key for i in plan.items}:
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
        block = self.filtered(better.child)
        known = guards(better.child) if better.condition.fallible else []
        return replace(block, where=(*block.where, *self._conditions(better.condition, known)))

    def _conditions(self, condition: Node, known: Sequence[Node] = ()) -> list[str]:
        """The parts of a conjunction; one that may fail waits for what is known, and for those to its left."""
        out: list[str] = []
        before = [self.expressions.render(k) for k in known]
        for part in conjuncts(condition):
            sql = self.expressions.condition(part)
            if part.fallible and before:
                out.append(lazy([(f"NOT {b}", "FALSE") for b in before], sql))
            else:
                out.append(sql)
            before.append(sql)
        return out

    def join(self, plan: Join) -> Block:
        if is_lateral(plan):
            raise refusal("LATERAL")
        left, right = self.source(plan.left), self.source(plan.right)
        if not left.source or not right.source:
            raise Refused("a join with a SELECT that has no FROM", "give it a column")
        nested = f"({right.source})" if isinstance(plan.right, Join) else right.source
        on = "" if plan.condition is None else f" ON {' AND '.join(self._conditions(plan.condition))}"
        return Block(f"{left.source} {_JOINS[plan.kind]} {nested}{on}")

    def aggregate(self, plan: Aggregate) -> Block:
        block = self.filtered(plan.child)
        keys = [(zero_free(sql, k.node.dtype), key) for k in plan.keys for sql, key in (self._computed(k),)]
        given = [(self._given(a.node), a.attribute.key) for a in plan.aggregates]
        group = ""
        if plan.sets is not None:
            columns = [sql for sql, _ in keys]
            sets = ", ".join("(" + ", ".join(columns[i] for i in s) + ")" for s in plan.sets)
            group = f"GROUP BY GROUPING SETS ({sets})"
        elif keys:
            group = "GROUP BY " + ", ".join(str(i + 1) for i in range(len(keys)))
        elif not given:
            raise refusal("a group of all rows without an aggregate")
        return replace(block, select=(*keys, *given), group=group)

    def _given(self, node: Node) -> str:
        if isinstance(node, Call) and node.op == "grouping":
            columns = ", ".join(zero_free(self.expressions.render(a), a.dtype) for a in node.args)
            return f"CAST(grouping({columns}) AS {type_name(node.dtype)})"
        return self.expressions.render(node)

    def window(self, plan: Window) -> Block:
        block = self.filtered(plan.child)
        passed = tuple((quote_identifier(a.key), a.key) for a in plan.child.output if a.key in self.read)
        items = tuple((self.expressions.render(i.node), i.attribute.key) for i in plan.items)
        return replace(block, select=(*passed, *items))

    def generate(self, plan: Generate) -> Block:
        block = self.filtered(plan.child)
        source = self.expressions.render(plan.source)
        passed = [(quote_identifier(a.key), a.key) for a in plan.child.output if a.key in self.read]

        def elements(x: str, dtype: pa.DataType) -> str:
            # A null and an empty list have no elements; OUTER gives such a row one null instead.
            if not plan.outer:
                return f"unnest({x})"
            return (
                f"unnest(CASE WHEN {size(source)} > 0 THEN {x} ELSE make_array(CAST(NULL AS {type_name(dtype)})) END)"
            )

        items = [(elements(source, plan.columns[0].dtype), plan.columns[0].key)]
        if plan.position is not None:
            # Both lists are unnested side by side.
            places = f"range(CAST(0 AS BIGINT), {size(source)})"
            items.insert(0, (f"CAST({elements(places, pa.int64())} AS INT)", plan.position.key))
        return replace(block, select=(*passed, *items))

    def distinct(self, plan: Distinct) -> Block:
        block = self.source(plan.child)
        items = tuple((zero_free(quote_identifier(a.key), a.dtype), a.key) for a in plan.output)
        return replace(block, select=items, distinct=True)

    def sort(self, plan: Sort) -> Block:
        # Over a source, so that ORDER BY still finds its keys when the outermost SELECT renames the columns.
        block = self.source(plan.child)
        order = "ORDER BY " + ", ".join(map(self.expressions.ordering, plan.order))
        return replace(block, select=_passing(plan.output), order=order)

    def limit(self, plan: Limit) -> Block:
        block = self.write(plan.child)
        if block.limit:
            block = self.wrapped(plan.child, block)
        count = "" if plan.count is None else f"LIMIT {plan.count}"
        return replace(block, limit=" ".join(p for p in (count, f"OFFSET {plan.offset}" if plan.offset else "") if p))

    def set_operation(self, plan: SetOperation) -> Block:
        counted = plan.every and plan.kind != "union"
        sides = []
        for child in (plan.left, plan.right):
            block = self.source(child)
            self.expressions.weights.pass_on(child.output, plan.columns)
            keys = [quote_identifier(a.key) for a in child.output]
            if plan.kind != "union":
                keys = [zero_free(k, a.dtype) for k, a in zip(keys, child.output, strict=True)]
            items = tuple((k, out.key) for k, out in zip(keys, plan.columns, strict=True))
            if counted:
                items += ((f"row_number() OVER (PARTITION BY {', '.join(keys)})", _COPY),)
            sides.append(replace(block, select=items).sql(child))
        word = plan.kind.upper() + (" ALL" if plan.every and not counted else "")
        both = f"({f' {word} '.join(f'({s})' for s in sides)}) AS r{next(self.numbers)}"
        return Block(both)


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
}
