"""The graph of a project: every node with what it reads and which columns it has, checked before anything is changed.

A query can be read only when the columns of what it reads are known, and only reading it tells what it reads. So nodes
are outlined with a stack: one that turns out to need another is put aside until that one is done. The words of a query
that are names of nodes give the order to begin with, in which hardly any has to be put aside; they decide nothing.

A node whose outline fails is a mistake, and so are cycles; nodes that read a broken one are left out, so that one
mistake is reported once. Outlines are kept between runs (`OutlineCache`), since reading a query takes milliseconds and
a project has hundreds of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from headwater.base.errors import HeadwaterError, NotFoundError, ProjectError
from headwater.derived import kinds
from headwater.derived.dependencies import dependants, upstream_first
from headwater.derived.outline import Outline, Shape
from headwater.pipeline.checks.declaration import DeclaredCheck, declared_checks, outlined, waits_for_itself
from headwater.pipeline.node import SOURCE, Node
from headwater.pipeline.outline_cache import OutlineCache
from headwater.sql.functions.user import UserFunction

__all__ = ["Graph", "TableShape", "build_graph"]

TableShape = Callable[[str], Shape | None]
"""The columns of a table of the lake; None if it is not there."""

_READABLE = ("view", "features")
"""The kinds whose rows can be read by their name."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


@dataclass(frozen=True)
class Graph:
    """Nodes in the order in which they can be refreshed, with their outlines."""

    nodes: Mapping[str, Node]
    """Every node, sources too, each after those that it reads."""
    outlines: Mapping[str, Outline]
    """The outline of every node that is kept."""
    mistakes: tuple[HeadwaterError, ...] = field(default=())
    checks: Mapping[str, DeclaredCheck] = field(default_factory=dict)
    """The data tests of the nodes, by the view that keeps the violations of each."""

    @property
    def kept(self) -> list[str]:
        """The names of the nodes that are kept, each after those that it reads."""
        return [name for name, node in self.nodes.items() if not node.is_source]

    @property
    def sources(self) -> list[str]:
        """The names of the tables that are read and not made."""
        return [name for name, node in self.nodes.items() if node.is_source]

    def reads(self, name: str) -> tuple[str, ...]:
        """What a node reads."""
        outline = self.outlines.get(name)
        return () if outline is None else outline.reads

    def readers(self, name: str) -> list[str]:
        """The nodes that read a node, directly."""
        return [one for one in self.kept if name in self.reads(one)]

    def checks_of(self, names: Iterable[str]) -> dict[str, DeclaredCheck]:
        """The data tests of some nodes, sources too."""
        wanted = set(names)
        return {view: one for view, one in self.checks.items() if one.check.node in wanted}

    def upstream(self, names: Iterable[str]) -> set[str]:
        """Some nodes with all kept ones that they read, directly or through others."""
        return set(upstream_first(names, lambda name: self.reads(name) if name in self.outlines else None))

    def downstream(self, names: Iterable[str]) -> set[str]:
        """Some nodes with all that read them, directly or through others."""
        asked = set(names)
        return asked | set(dependants(asked, {name: self.reads(name) for name in self.kept}))


class _Needs(Exception):
    """An outline needs that of another node first."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Broken(Exception):
    """An outline needs that of a node that has a mistake of its own."""


def build_graph(
    nodes: Mapping[str, Node],
    table_shape: TableShape,
    known_tables: Callable[[], list[str]],
    functions: Mapping[str, UserFunction],
    cache: OutlineCache,
) -> Graph:
    """The graph of a project's nodes over the tables of a lake."""
    return _Building(nodes, table_shape, known_tables, functions, cache).run()


class _Building:
    def __init__(
        self,
        nodes: Mapping[str, Node],
        table_shape: TableShape,
        known_tables: Callable[[], list[str]],
        functions: Mapping[str, UserFunction],
        cache: OutlineCache,
    ) -> None:
        self.nodes = nodes
        self.by_lower = {name.lower(): name for name in nodes}
        self.table_shape = table_shape
        self.known_tables = known_tables
        self.functions = functions
        self.cache = cache
        self.found: dict[str, Node] = {}
        self.outlines: dict[str, Outline] = {}
        self.shapes: dict[str, Shape] = {}
        self.broken: set[str] = set()
        self.mistakes: list[HeadwaterError] = []

    def run(self) -> Graph:
        for name, node in self.nodes.items():
            if node.is_source:
                self._add_source(name)
        for name in self._guessed_order():
            self._settle(name)
        self.cache.keep(name for name in self.outlines)
        checks = self._checks()
        return Graph(self.found, self.outlines, tuple(self.mistakes), checks)

    def _checks(self) -> dict[str, DeclaredCheck]:
        """The data tests of all nodes without a mistake, each with what it reads."""
        found: dict[str, DeclaredCheck] = {}
        for node in self.nodes.values():
            for one in declared_checks(node):
                if isinstance(one, HeadwaterError):
                    self.mistakes.append(one)
                elif node.name not in self.broken:
                    self._add_check(node, one, found)
        self.mistakes += waits_for_itself(
            found.values(), lambda name: self.outlines[name].reads if name in self.outlines else ()
        )
        return found

    def _add_check(self, node: Node, declared: DeclaredCheck, found: dict[str, DeclaredCheck]) -> None:
        check = declared.check
        holder = Node(name=check.name, kind=node.kind, where=declared.where)
        try:
            if check.view.lower() in (view.lower() for view in found):
                first = next(one.where for view, one in found.items() if view.lower() == check.view.lower())
                raise ProjectError.duplicate_name(check.name, declared.where, first)
            found[check.view] = outlined(declared, self._shape_for(holder), self.functions)
        except (_Broken, _Needs):  # what it reads has a mistake of its own
            return
        except HeadwaterError as error:
            self.mistakes.append(error)

    def _guessed_order(self) -> Iterator[str]:
        kept = {name: node for name, node in self.nodes.items() if not node.is_source}

        def words(name: str) -> list[str] | None:
            node = kept.get(name)
            if node is None:
                return None
            text = node.sql or " ".join(v for v in node.options.values() if isinstance(v, str))
            found = (self.by_lower.get(word.lower()) for word in _WORD.findall(text))
            return [one for one in dict.fromkeys(found) if one is not None and one != name]

        yield from upstream_first(kept, words)

    def _settle(self, name: str) -> None:
        """Outline a node, and before it those that it turns out to need."""
        stack = [name]
        while stack:
            at = stack[-1]
            if at in self.outlines or at in self.broken:
                stack.pop()
                continue
            try:
                self._outline(at)
            except _Needs as needs:
                if needs.name in stack:
                    ring = [*stack[stack.index(needs.name) :], needs.name]
                    # Of a ring each node reads the next on the stack, which was pushed because it is read.
                    self.mistakes.append(ProjectError.cycle(ring, self.nodes[ring[0]].where))
                    self.broken.update(ring)
                    continue
                stack.append(needs.name)
                continue
            except _Broken:
                self.broken.add(at)
            except HeadwaterError as error:
                self.broken.add(at)
                self.mistakes.append(_placed(error, self.nodes[at]))
            stack.pop()

    def _outline(self, name: str) -> None:
        node = self.nodes[name]
        outline = self.cache.outline(node, self._shape_for(node), self.functions)
        if outline is None:
            kind = kinds.kind(node.kind)
            outline = kind.outline(name, node.options, self._shape_for(node), self.functions)
            self.cache.add(node, outline, self.shapes, self.functions)
        self.outlines[name] = outline
        self.found[name] = node
        if outline.schema is not None:
            self.shapes[name] = Shape(name, outline.schema, node.where)

    def _shape_for(self, node: Node) -> Callable[[str], Shape]:
        def shape_of(asked: str) -> Shape:
            name = self.by_lower.get(asked.lower(), asked)
            if name in self.shapes:
                return self.shapes[name]
            if name in self.broken:
                raise _Broken
            other = self.nodes.get(name)
            if other is not None and not other.is_source:
                if name in self.outlines:
                    raise self._unknown(node, asked)
                raise _Needs(name)
            shape = self.table_shape(name)
            if shape is None:
                raise self._unknown(node, asked)
            if shape.name not in self.found:
                self.found[shape.name] = Node(name=shape.name, kind=SOURCE, where="the lake")
            self.shapes[name] = self.shapes[shape.name] = shape
            return shape

        return shape_of

    def _unknown(self, node: Node, asked: str) -> ProjectError:
        """The error of a node that reads a name which stands for nothing that can be read."""
        readable = {n for n, one in self.nodes.items() if one.kind in _READABLE or one.is_source}
        known = sorted((readable | set(self.known_tables())) - {node.name})
        where = node.where
        found = None if node.sql is None else re.search(rf"\b{re.escape(asked)}\b", node.sql, re.IGNORECASE)
        if found is not None and node.sql is not None:
            line = node.first_line + node.sql.count("\n", 0, found.start())
            where = f"{node.where.rpartition(':')[0]}:{line}"
        return ProjectError.unknown_relation(node.name, asked, known, where)

    def _add_source(self, name: str) -> None:
        node = self.nodes[name]
        self.found[name] = node
        try:
            shape = self.table_shape(name)
            if shape is None:
                raise ProjectError.source_missing(name, str(node.options.get("location", "the lake")), node.where)
            self.shapes[name] = shape
            _check_columns(node, shape)
        except HeadwaterError as error:
            self.broken.add(name)
            self.mistakes.append(_placed(error, node))


def _check_columns(node: Node, shape: Shape) -> None:
    """Raise if a source lacks a column that the project expects, or has it with another type."""
    from headwater.base.schema import spark_type
    from headwater.sql.statements.types import arrow_type_of

    columns = {f.name.lower(): f for f in shape.arrow_schema}
    for column, wanted in node.options.get("columns", {}).items():
        has = columns.get(column.lower())
        if has is None:
            raise ProjectError.source_column(node.name, column, list(shape.schema.names), node.where)
        if has.type != arrow_type_of(wanted):
            raise ProjectError.source_type(node.name, column, spark_type(has.type), wanted, node.where)


def _placed(error: HeadwaterError, node: Node) -> HeadwaterError:
    """The error, at its line of the node's file."""
    if node.path is None or node.sql is None or isinstance(error, ProjectError):
        if error.where is None or isinstance(error, NotFoundError):
            error.where = node.where
        elif node.where not in error.where:
            error.where = f"{node.where}\n         {error.where}"
        return error
    shown = node.where.rpartition(":")[0]
    line = node.first_line
    if error.position is not None:
        line += node.sql.count("\n", 0, error.position)
    error.where = f"{shown}:{line}" + (f"\n         {error.where}" if error.where else "")
    return error
