"""A graph as text: a tree from the outputs down to the sources, with figures in columns.

A graph is not a tree: a node that feeds several others is written out where it is met first, under its number, and is
referred to by that number (``↑ 4``) wherever it is met again; an edge that is fed back is always such a reference
(``⟲ 4``). A node that is in another group than the one above it says so. The SQL that nodes come from stands beside
them where there is room, and else below, by their numbers.

Invariants: every node has one line of its own; no line is wider than the width; nothing in it is a control character.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.observe.format import human_bytes, human_count, human_seconds
from headwater.observe.measure import cells, cut_cells, one_line
from headwater.observe.node_graph import GraphNode, NodeGraph, times_done

__all__ = ["draw_text"]

_HEADINGS = ("rows in", "rows out", "time", "share", "state", "bytes")
_SQL_MOST, _SQL_LEAST, _SQL_LONG = 60, 28, 400
_TREE_LEAST = 24
_GAP = "  "


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the tree: what is drawn before it, the node, and whether it is only referred to, and how."""

    prefix: str
    node: GraphNode
    mark: str
    group: str


def draw_text(graph: NodeGraph, *, width: int | None = 120) -> str:
    """The graph as lines of at most ``width`` cells."""
    lines = _walked(graph)
    numbers = {line.node.id: k for k, line in enumerate((n for n in lines if not n.mark), 1)}
    digits = len(str(len(numbers)))
    deepest = None if width is None else max(width * 3 // 10, 12)
    trees = [_tree(line, numbers, digits, deepest) for line in lines]
    figures = _figures(graph, lines)
    snippets = ["" if line.mark else cut_cells(one_line(line.node.sql), _SQL_MOST) for line in lines]
    head: tuple[str, ...] = _HEADINGS
    rows: Sequence[tuple[str, ...]] = figures
    if not any(any(row) for row in figures):
        head, rows = (), [() for _ in lines]
    else:
        # Columns of which nobody has a value are left out.
        kept = [k for k in range(len(_HEADINGS)) if k < 4 or any(row[k] for row in figures)]
        head, rows = tuple(_HEADINGS[k] for k in kept), [tuple(row[k] for k in kept) for row in figures]
    sizes = [max(cells(text) for text in column) for column in zip(head, *rows, strict=True)]
    taken = sum(size + len(_GAP) for size in sizes)
    tree_size, sql_size = _room(width, taken, max(map(cells, trees), default=0), max(map(cells, snippets), default=0))
    out = [_title(graph)]
    if head or sql_size:
        out.append(_row("", tree_size, head, sizes, "sql" if sql_size else "", sql_size))
    for tree, row, snippet in zip(trees, rows, snippets, strict=True):
        out.append(_row(tree, tree_size, row, sizes, snippet, sql_size))
    if any(snippets) and not sql_size:
        out += ["", f"{'':{digits}}{_GAP}sql"]
        out += [
            f"{numbers[n.node.id]:{digits}}{_GAP}{one_line(n.node.sql)[:_SQL_LONG]}"
            for n in lines
            if n.node.sql and not n.mark
        ]
    return "\n".join(line if width is None else cut_cells(line, width) for line in out)


def _room(width: int | None, taken: int, tree: int, sql: int) -> tuple[int, int]:
    """The cells for the tree and for the SQL, none where little of it would fit."""
    if width is None:
        return tree, sql
    left = width - taken
    for_sql = min(sql, left - tree - len(_GAP))
    if sql and for_sql < min(sql, _SQL_LEAST):
        for_sql = 0
    return max(min(tree, left - (for_sql + len(_GAP) if for_sql else 0)), min(tree, _TREE_LEAST)), for_sql


def _row(tree: str, tree_size: int, row: Sequence[str], sizes: Sequence[int], sql: str, sql_size: int) -> str:
    tree = cut_cells(tree, tree_size)
    parts = [tree + " " * (tree_size - cells(tree))]
    parts += [" " * (size - cells(text)) + text for text, size in zip(row, sizes, strict=True)]
    if sql_size:
        parts.append(cut_cells(sql, sql_size))
    return _GAP.join(parts).rstrip(" ")


def _walked(graph: NodeGraph) -> list[_Line]:
    """The lines of the tree, from the nodes that feed no other."""
    fed = {edge.source for edge in graph.edges() if not edge.feedback}
    seen: set[str] = set()
    lines: list[_Line] = []
    pending: list[tuple[str, str, str, str, tuple[str, ...]]] = [
        ("", "", node.id, "", ()) for node in reversed(graph.nodes) if node.id not in fed
    ]
    while pending:
        before, branch, node_id, mark, around = pending.pop()
        node = graph[node_id]
        mark = mark or ("↑" if node_id in seen else "")
        group = "/".join(node.path) if node.path != around and not mark else ""
        lines.append(_Line(before + branch, node, mark, group))
        if mark:
            continue
        seen.add(node_id)
        indent = before + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        inputs = [(i, "⟲" if i in node.feedback else "") for i in node.inputs]
        inputs += [(i, "⟲") for i in node.feedback if i not in node.inputs]
        for k, (source, way) in reversed(list(enumerate(inputs))):
            pending.append((indent, "└─ " if k == len(inputs) - 1 else "├─ ", source, way, node.path))
    return lines


def _tree(line: _Line, numbers: dict[str, int], digits: int, deepest: int | None) -> str:
    node, prefix = line.node, line.prefix
    if deepest is not None and len(prefix) > deepest:
        prefix = "…" + prefix[1 - deepest :]  # so deep down, only the nearest branches are drawn
    if line.mark:
        return f"{'':{digits}}{_GAP}{prefix}{line.mark} {numbers[node.id]} {_name(node)}"
    detail = one_line(node.detail)
    group = f"{_GAP}‹{one_line(line.group)}›" if line.group else ""
    text = _name(node) + (_GAP + detail if detail else "") + group
    return f"{numbers[node.id]:{digits}}{_GAP}{prefix}{text}"


def _name(node: GraphNode) -> str:
    return one_line(node.label) or one_line(node.kind) or "?"


def _figures(graph: NodeGraph, lines: Sequence[_Line]) -> list[tuple[str, ...]]:
    total = sum(node.metrics.seconds for node in graph.nodes if node.metrics is not None)
    rows = []
    for line in lines:
        m = line.node.metrics
        if line.mark or m is None:
            rows.append(("",) * len(_HEADINGS))
            continue
        share = m.seconds / total if total else 0.0
        rows.append(
            (
                human_count(m.rows_in),
                human_count(m.rows_out),
                human_seconds(m.seconds) if times_done([m])[0] else "",
                "" if not times_done([m])[0] else f"{share:.0%}" if share >= 0.005 or not share else "<1%",
                human_count(m.state_rows) if m.state_rows or m.state_bytes else "",
                human_bytes(m.state_bytes or m.bytes_out) if m.state_bytes or m.bytes_out else "",
            )
        )
    return rows


def _title(graph: NodeGraph) -> str:
    facts = [f"{len(graph.nodes)} node{'' if len(graph.nodes) == 1 else 's'}"]
    metrics = [node.metrics for node in graph.nodes if node.metrics is not None]
    if metrics:
        count, word = times_done(metrics)
        if count:
            facts.append(f"{human_seconds(sum(m.seconds for m in metrics))} in {count:,} {word}")
    return f"{one_line(graph.title)}: {', '.join(facts)}"
