"""GROUP BY: keys, aggregates, grouping sets, and PIVOT, which Spark makes of two of them.

Spark's Aggregate computes its whole select list. Here an `Aggregate` gives keys and aggregates and nothing else, and a
projection above computes the rest. Grouping sets are an Expand below, with one row a set and a number that says which
keys are null in it; here they are the `Aggregate`'s own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from headwater.sql.analyzed.projections import unique
from headwater.sql.analyzed.reading import Expressions, Reading, Rows, Scope, plan
from headwater.sql.analyzed.tree import Tree
from headwater.sql.nodes import AggregateCall, Call, Column, Literal, Node, Refused, call, rewrite
from headwater.sql.operators import compare
from headwater.sql.plan import Aggregate, Attribute, Named, Plan, Project
from headwater.sql.time_windows import check_sessions, sessions, taken_apart, with_fields
from headwater.sql.types import is_key, name_of

__all__: list[str] = []

_GROUPING_ID = "spark_grouping_id"


@dataclass
class _Groups:
    """The keys and aggregates of one GROUP BY, and what is made of an expression above it."""

    reading: Reading
    keys: dict[Node, Attribute]
    aggregates: dict[Node, Named] = field(default_factory=dict)
    marks: dict[str, Node] = field(default_factory=dict)
    # What a struct that was grouped by field after field is above the groups, and each of its fields.
    parts: dict[Node, Node] = field(default_factory=dict)

    def above(self, node: Node) -> Node:
        return rewrite(node, self._change)

    def _change(self, node: Node) -> Node | None:
        if node in self.parts:
            return self.parts[node]
        if isinstance(node, Column) and node.path[0] in self.marks:
            return self._taken("grouping", self.marks[node.path[0]])
        if (found := self._grouping(node)) is not None:
            return self._taken("grouping", found)
        if node in self.keys:
            return self.keys[node].column
        if isinstance(node, AggregateCall):
            return self._taken(node.op, node)
        if isinstance(node, Column) and len(node.path) > 1:
            whole = [k for k in self.keys if isinstance(k, Column) and k.path == node.path[: len(k.path)]]
            if whole:
                key = whole[0]
                assert isinstance(key, Column)
                return replace(node, path=(self.keys[key].key, *node.path[len(key.path) :]))
        return None

    def _grouping(self, node: Node) -> Node | None:
        """grouping(x) is one digit of the number of the set: cast((number >> n) & 1 as tinyint)."""
        if not isinstance(node, Call) or node.op != "cast" or node.dtype != pa.int8():
            return None
        digit = node.args[0]
        if not isinstance(digit, Call) or digit.op != "&" or not isinstance(digit.args[0], Call):
            return None
        shift = digit.args[0]
        if shift.op != "shiftright" or not isinstance(shift.args[0], Column) or not isinstance(shift.args[1], Literal):
            return None
        whole = self.marks.get(shift.args[0].path[0])
        if not isinstance(whole, Call) or not isinstance(shift.args[1].value, int):
            return None
        return call("grouping", (whole.args[len(whole.args) - 1 - shift.args[1].value],), pa.int8())

    def _taken(self, name: str, node: Node) -> Node:
        if node not in self.aggregates:
            self.aggregates[node] = self.reading.named(name, node)
        return self.aggregates[node].attribute.column


@plan("Aggregate")
def _aggregate(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    expanded = _expanded(tree)
    if expanded is not None:
        return _grouping_sets(reading, tree, expanded, around)
    below = reading.rows(tree.children[0], around)
    reader = reading.expressions(below, around)
    written = tree.trees("groupingExpressions")
    nodes = [reader.read(t) for t in written]
    marked = [(n, t.fields) for n, t in zip(nodes, written, strict=True) if isinstance(n, Column)]
    session = next((n for n, f in marked if f.get("sessionWindow")), None)
    if session is not None:
        return _sessions(reading, reader, tree, below.plan, [n for n in nodes if n != session], session)
    made = below.plan
    windows: dict[Node, dict[str, Column]] = {}
    for node, given in marked:
        if given.get("timeWindow"):
            made, windows[node] = with_fields(reading.named, made, node)
    keys = _keys(reading, [k for n in nodes for k in (windows[n].values() if n in windows else (n,))])
    groups = _Groups(reading, {n.node: n.attribute for n in keys})
    for window, fields in windows.items():
        groups.parts |= taken_apart(window, {name: groups.keys[column].column for name, column in fields.items()})
    return _selected(reading, reader, tree, made, keys, groups, None)


def _sessions(
    reading: Reading, reader: Expressions, tree: Tree, below: Plan, others: Sequence[Node], session: Column
) -> Rows:
    """session_window(): each row brings a window of its own, and those that overlap or touch are one."""
    cut = sessions(reading.named, below, others, session)
    keys = _keys(reading, [*others, cut.start])
    groups = _Groups(reading, {n.node: n.attribute for n in keys})
    end = groups.above(AggregateCall("max", (cut.end,), cut.end.dtype))
    groups.parts |= taken_apart(session, {"start": groups.keys[cut.start].column, "end": end})
    rows = _selected(reading, reader, tree, cut.plan, keys, groups, None)
    check_sessions(groups.aggregates, session)
    return rows


def _keys(reading: Reading, nodes: Sequence[Node]) -> list[Named]:
    named: list[Named] = []
    taken: set[str] = set()
    for at, key in enumerate(dict.fromkeys(nodes)):
        if not is_key(key.dtype):
            raise Refused(f"GROUP BY {name_of(key.dtype)}", "group by its fields")
        one = reading.named(f"key{at + 1}", key)
        attribute = one.attribute
        if isinstance(key, Column) and len(key.path) == 1 and key.path[0] not in taken:
            attribute = replace(attribute, key=key.path[0], name=key.path[0].rsplit("#", 1)[0])
        taken.add(attribute.key)
        named.append(Named(attribute, key))
    return named


def _selected(
    reading: Reading,
    reader: Expressions,
    tree: Tree,
    below: Plan,
    keys: Sequence[Named],
    groups: _Groups,
    sets: tuple[tuple[int, ...], ...] | None,
) -> Rows:
    """The aggregation, and the select list above it."""
    ids: list[int] = []
    items: list[Named] = []
    for part in tree.trees("aggregateExpressions"):
        spread = _pivoted(reading, reader, groups, part)
        if spread is not None:
            ids += [n for n, _ in spread]
            items += [i for _, i in spread]
            continue
        number, item = reader.named(part)
        node = groups.above(item.node)
        found = reading.named(item.attribute.name, node)
        if isinstance(node, Column) and len(node.path) == 1:
            found = replace(found, attribute=replace(found.attribute, key=node.path[0]))
        item = found
        ids.append(number)
        items.append(item)
    made = Aggregate(below, tuple(keys), tuple(groups.aggregates.values()), sets)
    return Rows(Project(made, unique(reading, items)), tuple(ids))


# --- grouping sets


def _expanded(tree: Tree) -> Tree | None:
    below = tree.children[0]
    marked = below.kind == "Expand" and any(t.fields["name"] == _GROUPING_ID for t in below.trees("output"))
    return below if marked else None


def _grouping_sets(reading: Reading, tree: Tree, expand: Tree, around: Scope | None) -> Rows:
    below = reading.rows(expand.children[0], around)
    reader = reading.expressions(below, around)
    outputs = expand.trees("output")
    place = {int(t.fields["exprId"]): at for at, t in enumerate(outputs)}
    mark = next(int(t.fields["exprId"]) for t in outputs if t.fields["name"] == _GROUPING_ID)
    keyed = [int(t.fields["exprId"]) for t in tree.trees("groupingExpressions")]
    numbers = keyed[: keyed.index(mark)]
    rows = [Tree("", {"row": row}, ()).trees("row") for row in expand.fields["projections"]]
    columns: dict[int, Attribute] = dict(reader.scope.columns)
    named: list[Named] = []
    for number in numbers:
        trees = [row[place[number]] for row in rows]
        # A key is null where the set does not have it; a key of no set at all is null everywhere.
        written = [t for t in trees if t.kind != "Literal"]
        source = reader.read(written[0] if written else trees[0])
        if not isinstance(source, Column):
            raise Refused("a grouping set by a constant", "leave it out")
        if not is_key(source.dtype):
            raise Refused(f"GROUP BY {name_of(source.dtype)}", "group by its fields")
        attribute = replace(next(a for a in below.plan.output if a.key == source.path[0]), nullable=True)
        columns[number] = attribute
        named.append(Named(attribute, source))
    sets = tuple(tuple(at for at, n in enumerate(numbers) if row[place[n]].kind != "Literal") for row in rows)
    all_keys = call("grouping", tuple(n.attribute.column for n in named), pa.int64())
    columns[mark] = reading.attribute(_GROUPING_ID, pa.int64(), nullable=False)
    inner = Expressions(reading, Scope(columns, around))
    groups = _Groups(reading, {n.node: n.attribute for n in named}, marks={columns[mark].key: all_keys})
    return _selected(reading, inner, tree, below.plan, named, groups, sets)


# --- PIVOT


def _pivoted(reading: Reading, reader: Expressions, groups: _Groups, part: Tree) -> list[tuple[int, Named]] | None:
    """A PivotFirst as one aggregate for each of its values, of the one row that has it;
    None if this is something else.
    """
    if part.kind != "Alias" or part.children[0].kind != "AggregateExpression":
        return None
    first = part.children[0].children[0]
    if first.kind != "PivotFirst":
        return None
    column, value = reader.children(first)
    made = []
    for constant in first.trees("pivotColumnValues"):
        given = reader.read(constant)
        # Below, rows are grouped by that column too: the greatest of one value is the value.
        picked = AggregateCall("max", (value,), value.dtype, where=compare("<=>", column, given))
        node = groups.above(picked)
        assert isinstance(node, Column)
        attribute = next(n.attribute for n in groups.aggregates.values() if n.attribute.key == node.path[0])
        made.append((reading.own_number(), Named(attribute, node)))
    reading.pivots[int(part.fields["exprId"])] = tuple(n for n, _ in made)
    return made
