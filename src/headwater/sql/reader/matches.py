"""MATCH_RECOGNIZE: a relation read into a `Match`, by the rules of SQL:2016.

A column means the last row of the match so far, of those that its variable took (``A.price``) or of any (``price``);
FIRST, LAST, PREV and NEXT say another one. So inside DEFINE and MEASURES every column becomes a call of ``row value``
(`headwater.sql.row_patterns.calls`), and every aggregate one of ``row aggregate``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from headwater.sql.casts import cast
from headwater.sql.functions.catalogue import AGGREGATES, by_order
from headwater.sql.interval_types import IntervalType, has_interval
from headwater.sql.match_grammar import RowPatternTable
from headwater.sql.nodes import (
    Attribute,
    Column,
    Literal,
    Named,
    Node,
    Ordering,
    Refused,
    Wrong,
    call,
    walk,
)
from headwater.sql.plan import Match, Plan, Project
from headwater.sql.plan.match import Skip
from headwater.sql.reader.column_names import column_name
from headwater.sql.reader.context import Context
from headwater.sql.reader.expressions import QueryReader
from headwater.sql.reader.scopes import Entry, RowScope
from headwater.sql.row_patterns import (
    Exclusion,
    Pattern,
    parse_pattern,
    parts_of_pattern,
    variables_of,
)
from headwater.sql.row_patterns.automaton import automaton_of
from headwater.sql.row_patterns.calls import ALL_ROWS, LABEL, NUMBER, Place, RowAggregate
from headwater.sql.types import LONG, STRING, family, is_key, name_of

__all__ = ["read_match"]

_NAVIGATION = ("first", "last", "prev", "next")


def read_match(context: Context, plan: Plan, entries: tuple[Entry, ...], node: RowPatternTable) -> Match:
    """The plan of a table behind which MATCH_RECOGNIZE stands."""
    return _MatchClause(context, plan, entries, node).read()


class _MatchClause:
    def __init__(self, context: Context, plan: Plan, entries: tuple[Entry, ...], node: RowPatternTable) -> None:
        self.context, self.node = context, node
        self.plan = plan
        self.computed: list[Attribute] = []
        self.scope = RowScope(entries)
        self.columns = tuple(dict.fromkeys(self.scope.visible()))
        self.pattern = self._pattern()
        self.variables: dict[str, str] = {}
        for name in variables_of(self.pattern):
            self.variables.setdefault(name.lower(), name)
        self.sets: dict[str, tuple[str, ...]] = {low: (name,) for low, name in self.variables.items()}

    def read(self) -> Match:
        self._subsets()
        partition = self._partition()
        order = self._order()
        definitions = self._definitions()
        measures = self._measures()
        every_row = bool(self.node.args.get("every_row"))
        if self.node.args.get("unmatched") and _has_exclusion(self.pattern):
            raise Wrong(
                "WITH UNMATCHED ROWS and an exclusion {- -} cannot stand together",
                "leave one of them out: a row that is left out would be neither matched nor unmatched",
                part=self.node.args["pattern"],
            )
        named = {a.key: a for a in (*self.columns, *self.computed)}
        by = list(dict.fromkeys(named[key.path[0]] for key in partition))
        kept, rest = by, []
        if every_row:
            sorted_by = [a for a in self.columns if a not in by and any(a.column == o.node for o in order)]
            kept, rest = [*by, *sorted_by], [a for a in self.columns if a not in by and a not in sorted_by]
        return Match(
            self.plan,
            partition,
            order,
            self.pattern,
            definitions,
            measures,
            tuple(kept),
            tuple(rest),
            self._skip(),
            self._within(order),
            every_row,
            bool(self.node.args.get("empty", True)),
            bool(self.node.args.get("unmatched")),
        )

    # --- the pattern and its variables

    def _pattern(self) -> Pattern:
        literal = self.node.args["pattern"]
        text = self.context.scanned.texts[literal.this]
        assert isinstance(text, str)
        try:
            found = parse_pattern(text)
            automaton_of(found, dict.fromkeys(variables_of(found)))  # which refuses one that is too long
            return found
        except Refused as refused:
            begun = self.context.scanned.original(literal.meta["start"])
            start = self.context.text.find(text, max(begun - 1, 0))
            refused.position = start + (refused.position or 0)
            raise

    def _subsets(self) -> None:
        for given in self.node.args.get("subsets") or ():
            name = self.context.name_of(given.args["alias"])
            if name.lower() in self.sets:
                raise Wrong(f"`{name}` is defined twice", "give each SUBSET a name of its own", part=given)
            members = []
            for member in given.this.expressions:
                low = self.context.name_of(member).lower()
                if low not in self.variables:
                    what = f"`{self.context.name_of(member)}` is no variable of the pattern"
                    raise Wrong(what, f"variables: {', '.join(self.variables.values())}", part=member)
                members.append(self.variables[low])
            self.sets[name.lower()] = tuple(v for v in self.variables.values() if v in members)

    def variables_named(self, identifier: exp.Expr) -> tuple[str, ...]:
        """The variables that a name stands for."""
        name = self.context.name_of(identifier)
        found = self.sets.get(name.lower())
        if found is None:
            what = f"`{name}` is no variable of the pattern and no SUBSET"
            raise Wrong(what, f"variables: {', '.join(self.variables.values())}", part=identifier)
        return found

    # --- clauses

    def _reader(self, place: str) -> QueryReader:
        return QueryReader(self.context, self.scope, place=place)

    def _partition(self) -> tuple[Column, ...]:
        found = []
        for given in self.node.args.get("partition") or ():
            key = self._named_key(self._reader("PARTITION BY").read(given), given)
            if not is_key(key.dtype):
                what = f"MATCH_RECOGNIZE cannot PARTITION BY {name_of(key.dtype)}"
                raise Wrong(what, "partition by plain columns", part=given)
            found.append(key)
        return tuple(found)

    def _order(self) -> tuple[Ordering, ...]:
        clause = self.node.args.get("order")
        if clause is None:
            raise Wrong("MATCH_RECOGNIZE needs an ORDER BY", "write ORDER BY ts behind PARTITION BY", part=self.node)
        reader, found = self._reader("ORDER BY"), []
        for given in clause.expressions:
            key = self._named_key(reader.read(given.this), given.this)
            found.append(reader.ordering(given, key))
        return tuple(found)

    def _named_key(self, key: Node, written: exp.Expr) -> Column:
        """The key as a column: what is computed becomes one of the rows below."""
        if isinstance(key, Column) and len(key.path) == 1:
            return key
        named = self.context.named(column_name(self.context, self.scope, written, {}), key)
        self.computed.append(named.attribute)
        self.plan = Project(self.plan, (*(Named(a, a.column) for a in self.plan.output), named))
        return named.attribute.column

    def _definitions(self) -> tuple[tuple[str, Node], ...]:
        found: dict[str, Node] = {}
        for given in self.node.args.get("definitions") or ():
            name = self.context.name_of(given.args["alias"])
            variable = self.variables.get(name.lower())
            if variable is None:
                hint = f"the pattern has {', '.join(self.variables.values()) or 'no variables'}"
                raise Wrong(f"DEFINE names `{name}`, which is no variable of the pattern", hint, part=given)
            if variable in found:
                raise Wrong(f"`{name}` is defined twice", "join the conditions with AND", part=given)
            reader = MatchReader(self, defining=variable)
            found[variable] = reader.condition(given.this, "a condition of DEFINE")
        return tuple((v, found[v]) for v in self.variables.values() if v in found)

    def _measures(self) -> tuple[Named, ...]:
        taken: set[str] = set()
        found = []
        for given in self.node.args.get("measures") or ():
            name = self.context.name_of(given.args["alias"])
            if name.lower() in taken:
                raise Wrong(f"two measures are called `{name}`", "give each a name of its own", part=given)
            taken.add(name.lower())
            node = MatchReader(self, defining=None).whole(given.this)
            found.append(Named(self.context.attribute(name, node.dtype), node))
        if not found and not self.node.args.get("every_row") and not self.node.args.get("partition"):
            raise Wrong(
                "ONE ROW PER MATCH without MEASURES and PARTITION BY has no columns",
                "write MEASURES, or ALL ROWS PER MATCH",
                part=self.node,
            )
        return tuple(found)

    def _skip(self) -> Skip:
        given = self.node.args.get("skip") or ["past last row"]
        return Skip(given[0], self.variables_named(given[1]) if len(given) > 1 else ())

    def _within(self, order: tuple[Ordering, ...]) -> Literal | None:
        given = self.node.args.get("within")
        if given is None:
            return None
        key = order[0]
        if key.descending:
            raise Wrong("WITHIN needs a rising order", "order by the time, ascending", part=given)
        length = self._reader("WITHIN").read(given)
        kind = family(key.node.dtype)
        if kind in ("timestamp", "timestamp_ntz", "date"):
            if (
                not isinstance(length, Literal)
                or not isinstance(length.dtype, IntervalType)
                or not length.dtype.of_days
            ):
                raise Wrong("WITHIN takes an interval of days or less", "write WITHIN INTERVAL 10 SECONDS", part=given)
            assert isinstance(length.value, int)
            found = Literal(length.value, LONG)
        else:
            if kind not in ("integer", "float", "decimal"):
                hint = "order by a timestamp, a date or a number"
                raise Wrong(f"WITHIN cannot measure an order by {name_of(key.node.dtype)}", hint, part=given)
            value = cast(length, key.node.dtype) if length.dtype != key.node.dtype else length
            if not isinstance(value, Literal) or value.value is None:
                raise Wrong("WITHIN takes a constant", "write WITHIN 100", part=given)
            found = value
        assert not isinstance(found.value, str | bytes | None)
        if found.value < 0:  # type: ignore[operator]
            raise Wrong("WITHIN takes a length that is not negative", "write WITHIN INTERVAL 10 SECONDS", part=given)
        return found


class MatchReader(QueryReader):
    """Reads a condition of DEFINE or a value of MEASURES."""

    READERS = dict(QueryReader.READERS)  # noqa: RUF012

    def __init__(self, clause: _MatchClause, *, defining: str | None) -> None:
        super().__init__(clause.context, clause.scope)
        self.clause = clause
        self.defining = defining
        # Inside FIRST(…), an aggregate and the like: the variables that columns were named with.
        self.inside: list[tuple[str, ...] | None] | None = None

    # --- columns

    def column(self, node: exp.Expr) -> Node:
        variables, plain = self._qualified(node)
        if variables is None:
            found = super().column(node)
            variables = ALL_ROWS
        else:
            found = super().column(plain)
        if not any(isinstance(n, Column) for n in walk(found)):
            return found  # current_date, a parameter of a lambda
        if self.inside is not None:
            self.inside.append(variables)
            return found
        return Place(variables).value(found)

    def _qualified(self, node: exp.Expr) -> tuple[tuple[str, ...] | None, exp.Expr]:
        """The variables before a column's name, and the column without them."""
        first = node
        while isinstance(first, exp.Dot):
            first = first.this
        if not isinstance(first, exp.Column):
            return None, node
        parts = list(first.parts)
        if len(parts) < 2 or not isinstance(parts[0], exp.Identifier):
            return None, node
        variables = self.clause.sets.get(parts[0].name.lower())
        if variables is None or self._variable(parts[0].name) is not None:
            return None, node
        plain: exp.Expr = exp.Column(this=parts[1])
        for part in parts[2:]:
            plain = exp.Dot(this=plain, expression=part)
        plain.meta.update(first.meta)
        if first is not node:
            whole = node.copy()
            inner = whole
            while isinstance(inner.this, exp.Dot):
                inner = inner.this
            inner.set("this", plain)
            return variables, whole
        return variables, plain

    @contextlib.contextmanager
    def _rows(self, what: str) -> Iterator[list[tuple[str, ...] | None]]:
        """Columns inside are plain; those of one call are of the rows of the same variables."""
        if self.inside is not None:
            raise Wrong(f"{what} cannot stand inside FIRST, LAST, PREV, NEXT or an aggregate", "nest PREV(LAST(A.x))")
        self.inside = []
        try:
            yield self.inside
            if len(set(self.inside)) > 1:
                raise Wrong(f"the columns inside of {what} belong to different variables", "name them with one")
        finally:
            self.inside = None

    # --- calls

    def call(self, node: exp.Expr) -> Node:
        name = node.name.lower()
        if name in _NAVIGATION:
            return self._navigation(node)
        if name == "classifier":
            return self._classifier(node)
        if name == "match_number":
            if node.expressions:
                raise Wrong("match_number() takes no arguments", "leave them out")
            if self.inside is not None:
                raise Wrong("match_number() stands outside of other calls", "it is the same for all rows of a match")
            return call(NUMBER, (), LONG)
        if name in AGGREGATES and AGGREGATES[name].kind == "window":
            raise Wrong(f"the window function {name}() cannot stand in MATCH_RECOGNIZE", "use PREV and NEXT")
        if name in AGGREGATES:
            return self._aggregated(node)
        if node.meta.get("semantics"):
            raise Wrong(f"{node.meta['semantics']} stands before FIRST, LAST or an aggregate", "leave the word out")
        return super().call(node)

    def filtered(self, node: exp.Expr) -> Node:
        return self._aggregated(node)

    def window(self, node: exp.Expr) -> Node:
        raise Wrong("a window function cannot stand in MATCH_RECOGNIZE", "use PREV, NEXT, FIRST, LAST or an aggregate")

    def subquery(self, node: exp.Expr) -> Node:
        raise Wrong("a subquery cannot stand in MATCH_RECOGNIZE", "compute it in the table that is matched")

    exists = subquery

    def contains(self, node: exp.Expr) -> Node:
        if node.args.get("query") is not None:
            return self.subquery(node)
        return super().contains(node)

    def _final(self, node: exp.Expr) -> bool:
        word = node.meta.get("semantics")
        if self.defining is not None:
            if word == "FINAL":
                raise Wrong("FINAL cannot stand in DEFINE", "the rest of the match is not known yet there")
            return False
        return word == "FINAL"

    def _count(self, node: exp.Expr, name: str) -> int:
        number = QueryReader(self.context, RowScope(()), place=f"{name}()").read(node)
        value = number.value if isinstance(number, Literal) else None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 31:
            raise Wrong(
                f"{name}() counts rows by a whole number, from 0 up", f"write {name.upper()}(A.x, 1)", part=node
            )
        return value

    def _arguments(self, node: exp.Expr, name: str) -> tuple[exp.Expr, int | None]:
        self._args(node, "this", "expressions")
        given = list(node.expressions)
        if not 1 <= len(given) <= 2:
            raise Wrong(f"{name}() takes a value and a number of rows", f"write {name.upper()}(A.x, 1)")
        return given[0], self._count(given[1], name) if len(given) == 2 else None

    def _navigation(self, node: exp.Expr) -> Node:
        name = node.name.lower()
        inner, number = self._arguments(node, name)
        if name in ("first", "last"):
            return self._value(inner, Place(first=name == "first", skipped=number or 0, final=self._final(node)), name)
        if node.meta.get("semantics"):
            raise Wrong(f"{node.meta['semantics']} cannot stand before {name.upper()}", "leave the word out")
        shift = (1 if number is None else number) * (-1 if name == "prev" else 1)
        place = Place(shift=shift)
        bare = inner
        while isinstance(bare, exp.Paren):
            bare = bare.this
        if isinstance(bare, exp.Anonymous) and bare.name.lower() in ("first", "last"):
            word = bare.name.lower()
            inner, skipped = self._arguments(bare, word)
            place = Place(first=word == "first", skipped=skipped or 0, shift=shift, final=self._final(bare))
        return self._value(inner, place, name)

    def _value(self, inner: exp.Expr, place: Place, name: str) -> Node:
        with self._rows(f"{name}()") as named:
            found = self.read(inner)
        if not named:
            raise Wrong(f"{name}() needs a column", f"write {name.upper()}(A.x)")
        return replace(place, variables=named[0] or ALL_ROWS).value(found)

    def _classifier(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expressions")
        variables = ALL_ROWS
        if len(node.expressions) > 1:
            raise Wrong("classifier() takes one variable, or none", "write CLASSIFIER() or CLASSIFIER(A)")
        for given in node.expressions:
            if not isinstance(given, exp.Column) or len(given.parts) != 1:
                raise Wrong("classifier() takes a variable", "write CLASSIFIER() or CLASSIFIER(A)")
            variables = self.clause.variables_named(given.this)
        found = call(LABEL, (), STRING)
        if self.inside is not None:
            self.inside.append(variables)
            return found
        return Place(variables).value(found)

    def _aggregated(self, node: exp.Expr) -> Node:
        core = node
        while isinstance(core, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            core = core.this
        final = self._final(core)
        star = core.expressions[0] if isinstance(core, exp.Anonymous) and len(core.expressions) == 1 else None
        starred = isinstance(star, exp.Column) and isinstance(star.this, exp.Star)
        if starred:
            assert star is not None
            variables = self.clause.variables_named(star.parts[0])
            core.set("expressions", [exp.Star()])
        with self._rows(f"{core.name.lower()}()") as named:
            found = super()._aggregate(node)
        if starred:
            named = [variables]
        if by_order(found.op) in ("peers", "rows", "place") or found.within:
            hint = "use FIRST, LAST, PREV, NEXT, count, sum, avg, min, max and the like"
            raise Wrong(f"{found.op}() cannot stand in MATCH_RECOGNIZE", hint)
        if any(has_interval(a.dtype) for a in found.args):
            hint = "aggregate LAST(A.ts) - FIRST(A.ts) above it"
            raise Wrong(f"{found.op}() of intervals cannot stand in MATCH_RECOGNIZE", hint)
        variables = (named[0] if named else None) or ALL_ROWS
        aggregate = RowAggregate(found.op, found.args, found.dtype, variables, final, found.distinct, found.where)
        return aggregate.call()


MatchReader.READERS.update(
    {
        exp.Anonymous: MatchReader.call,
        exp.Column: MatchReader.column,
        exp.Dot: MatchReader.column,
        exp.Identifier: MatchReader.column,
        exp.Filter: MatchReader.filtered,
        exp.IgnoreNulls: MatchReader.filtered,
        exp.RespectNulls: MatchReader.filtered,
        exp.Window: MatchReader.window,
        exp.Subquery: MatchReader.subquery,
        exp.Select: MatchReader.subquery,
        exp.Exists: MatchReader.exists,
        exp.In: MatchReader.contains,
    }
)


def _has_exclusion(pattern: Pattern) -> bool:
    return isinstance(pattern, Exclusion) or any(map(_has_exclusion, parts_of_pattern(pattern)))
