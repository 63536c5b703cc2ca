"""A picture of a graph: one SVG document, without scripts, fonts or other files.

Each node is a card: on its left edge the colour of its kind, in its background how hot it is, and on it a label, its
arguments, and its figures; the whole of them, and the SQL it comes from, is a tooltip. Edges carry the number of rows
that went over them, and are the wider the more there were; those that are fed back are dashed. Colours follow the
reader's light or dark mode, for which both sets are in the style sheet.

Invariants: the document is well-formed whatever the texts are; no text is wider than its card; the same graph gives
the same document, byte for byte.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from html import escape

from headwater.observe.format import human_bytes, human_count, human_seconds
from headwater.observe.labels import Labels
from headwater.observe.layout import CAPTION_SIZE, GroupBox, Rect, Route, lay_out
from headwater.observe.measure import cut, one_line, printable, text_width
from headwater.observe.node_graph import GraphNode, Heat, NodeGraph, NodeMetrics, times_done
from headwater.observe.palette import DARK, LIGHT, Scale, kind_colour

__all__ = ["draw_svg", "figures_of", "tooltip_of"]

_LABEL, _DETAIL, _FIGURES, _ON_EDGE = 13, 11.5, 11, 10.5
_LEFT, _RIGHT = 17, 13
_NARROWEST, _WIDEST, _WIDTH_STEP = 128, 272, 16
_MARGIN, _HEAD, _FOOT, _LEGEND_LINE = 24, 66, 32, 22
_LEAST_WIDTH = 320
_SQL_LINES, _SQL_LENGTH = 24, 1200

_STYLE = """\
.hw-graph{{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}}
.hw-graph .label,.hw-graph .title{{font-weight:600}}
.hw-graph .figures,.hw-graph .rows{{font-variant-numeric:tabular-nums}}
.hw-graph .edge{{fill:none;stroke-linecap:round}}
.hw-graph .back{{stroke-dasharray:5 4}}
.hw-graph .rows{{font-size:{on_edge}px;text-anchor:middle}}
.hw-graph .label{{font-size:{label}px}}
.hw-graph .detail{{font-size:{detail}px}}
.hw-graph .figures,.hw-graph .small{{font-size:{figures}px}}
.hw-graph .title{{font-size:16px}}
.hw-graph .caption{{font-size:{caption}px;font-weight:600}}
{light}
@media (prefers-color-scheme:dark){{
{dark}
}}"""


def draw_svg(graph: NodeGraph, *, heat: Heat = "seconds") -> str:
    """The picture of a graph, as a text."""
    scale = Scale(graph, heat)
    cards = {node.id: _lines(node) for node in graph.nodes}
    layout = lay_out(graph, {node_id: _size(lines) for node_id, lines in cards.items()})
    legend, legend_height, legend_width = _legend(graph, scale, max(layout.width, _LEAST_WIDTH))
    title = cut(one_line(graph.title), 16, max(layout.width, _LEAST_WIDTH), bold=True)
    inner = max(layout.width, legend_width, _LEAST_WIDTH)
    width, height = inner + 2 * _MARGIN, _HEAD + layout.height + _FOOT + legend_height + 2 * _MARGIN - 12
    arrow = f"hw-{zlib.crc32(repr((graph, heat)).encode(errors='replace')):08x}"
    labels = Labels(layout.nodes.values(), [group.rect for group in layout.groups])
    left = _MARGIN + (inner - layout.width) // 2
    name = escape(one_line(graph.title)[:_SQL_LENGTH])
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hw-graph" role="img" aria-label="{name}"',
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{_style()}</style>",
        f"<defs>{_arrow(arrow, 'tip')}{_arrow(arrow + 'b', 'tip tip-back')}</defs>",
        f'<rect class="paper" width="{width}" height="{height}" rx="10"/>',
        f'<text class="title ink" x="{_MARGIN}" y="{_MARGIN + 16}">{escape(title)}</text>',
        f'<text class="small dim" x="{_MARGIN}" y="{_MARGIN + 35}">{escape(_summary(graph))}</text>',
        f'<g transform="translate({left} {_HEAD + _MARGIN - 12})">',
        *map(_group, layout.groups),
        *(_edge(graph, route, arrow) for route in layout.routes),
        *(_card(node, cards[node.id], layout.nodes[node.id], scale) for node in graph.nodes),
        *(_rows(graph, route, labels, layout.groups) for route in layout.routes),
        "</g>",
        f'<g transform="translate({_MARGIN} {height - _MARGIN - legend_height + 10})">',
        *legend,
        "</g>",
        "</svg>",
    ]
    return "\n".join(part for part in out if part) + "\n"


# -- cards ---------------------------------------------------------------------------------------------------------


def _lines(node: GraphNode) -> list[tuple[str, str]]:
    """The lines of a card, cut to the widest there is, with their classes."""
    room = _WIDEST - _LEFT - _RIGHT
    lines = [("label ink", cut(one_line(node.label), _LABEL, room, bold=True))]
    if detail := one_line(node.detail):
        lines.append(("detail dim", cut(detail, _DETAIL, room)))
    if node.metrics is not None:
        lines.append(("figures dim", cut(figures_of(node.metrics), _FIGURES, room)))
    return lines


def figures_of(m: NodeMetrics) -> str:
    size = m.state_bytes or m.bytes_out
    state = human_bytes(size) if size else f"{human_count(m.state_rows)} held" if m.state_rows else ""
    rows = f"{human_count(m.rows_out)} row{'' if m.rows_out == 1 else 's'}"
    return " · ".join(filter(None, (rows, human_seconds(m.seconds) if times_done([m])[0] else "", state)))


_SIZES = {"label": (_LABEL, True), "detail": (_DETAIL, False), "figures": (_FIGURES, False)}


def _size(lines: Sequence[tuple[str, str]]) -> tuple[int, int]:
    widest = 0.0
    for kind, text in lines:
        size, bold = _SIZES[kind.split()[0]]
        widest = max(widest, text_width(text, size, bold=bold))
    width = math.ceil((widest + _LEFT + _RIGHT) / _WIDTH_STEP) * _WIDTH_STEP
    return min(max(width, _NARROWEST), _WIDEST), 22 + 16 * len(lines)


def _card(node: GraphNode, lines: Sequence[tuple[str, str]], at: Rect, scale: Scale) -> str:
    height = at.height
    texts = "".join(
        f'<text class="{kind}" x="{_LEFT}" y="{23 + 16 * k}">{escape(text)}</text>'
        for k, (kind, text) in enumerate(lines)
    )
    return (
        f'<g class="node" transform="translate({at.x} {at.y})"><title>{escape(tooltip_of(node))}</title>'
        f'<rect class="card h{scale.step(node.metrics)}" width="{at.width}" height="{height}" rx="8"/>'
        f'<path fill="{kind_colour(node.kind)}" d="M6 .25A8 8 0 0 0 0 8V{height - 8}A8 8 0 0 0 6 {height - 0.25}z"/>'
        f"{texts}</g>"
    )


def tooltip_of(node: GraphNode) -> str:
    lines = [one_line(node.label), one_line(node.detail), f"kind: {one_line(node.kind)}"]
    if m := node.metrics:
        count, word = times_done([m])
        size = f"bytes out: {human_bytes(m.bytes_out)}" if m.tasks else ""
        lines += [
            f"rows in: {m.rows_in:,}",
            f"rows out: {m.rows_out:,}",
            f"time: {human_seconds(m.seconds)} in {count:,} {word}" if count else "",
            size or f"state: {m.state_rows:,} rows, {human_bytes(m.state_bytes)}",
            f"read: {human_bytes(m.bytes_in)}" if m.bytes_in else "",
            f"shuffled: {human_bytes(m.shuffled_bytes)}" if m.shuffled_bytes else "",
        ]
    lines = [line for line in lines if line]
    if sql := node.sql.strip():
        short = sql[:_SQL_LENGTH].splitlines()
        kept = [printable(line.rstrip()) for line in short[:_SQL_LINES]]
        lines += ["", *kept, *(["…"] if len(short) > _SQL_LINES or len(sql) > _SQL_LENGTH else [])]
    return "\n".join(lines)


def _group(group: GroupBox) -> str:
    at = group.rect
    return (
        f'<rect class="group {_shade(group)}" x="{at.x}" y="{at.y}" width="{at.width}" height="{at.height}" rx="12"/>'
        f'<text class="caption dim" x="{group.caption_x}" y="{at.y + 19}">{escape(group.caption)}</text>'
    )


# -- edges ---------------------------------------------------------------------------------------------------------


def _edge(graph: NodeGraph, route: Route, arrow: str) -> str:
    metrics = graph[route.edge.source].metrics
    width = 1.2 + min(0.2 * math.log10(1 + metrics.rows_out), 1.6) if metrics else 1.6
    back = route.edge.feedback
    return (
        f'<path class="edge{" back" if back else ""}" stroke-width="{width:.1f}" d="{_path(route.points)}" '
        f'marker-end="url(#{arrow}{"b" if back else ""})"/>'
    )


def _path(points: Sequence[tuple[int, int]]) -> str:
    """Straight stretches, rounded corners, and curves that begin and end upright.

    >>> _path([(0, 0), (0, 10), (20, 50)])
    'M0 0V10C0 30 20 30 20 50'
    """
    (x, y), out = points[0], [f"M{points[0][0]} {points[0][1]}"]
    for k, (to_x, to_y) in enumerate(points[1:], 1):
        after = points[k + 1] if k + 1 < len(points) else None
        if to_x == x and to_y == y:
            continue
        if to_x != x and to_y != y:
            middle = (y + to_y) / 2
            out.append(f"C{x} {middle:g} {to_x} {middle:g} {to_x} {to_y}")
        elif after and (to_x == x) != (after[0] == to_x) and (after[0] == to_x or after[1] == to_y):
            # A right angle: stop short of it, and turn.
            reach = min(8, max(abs(to_x - x), abs(to_y - y)) - 1, abs(after[0] - to_x) + abs(after[1] - to_y))
            before = (to_x - _towards(x, to_x, reach), to_y - _towards(y, to_y, reach))
            beyond = (to_x + _towards(to_x, after[0], reach), to_y + _towards(to_y, after[1], reach))
            out.append(f"L{before[0]} {before[1]}Q{to_x} {to_y} {beyond[0]} {beyond[1]}")
            to_x, to_y = beyond  # noqa: PLW2901
        else:
            out.append(f"V{to_y}" if to_x == x else f"H{to_x}")
        x, y = to_x, to_y
    return "".join(out)


def _towards(start: int, end: int, reach: int) -> int:
    return reach if end > start else -reach if end < start else 0


def _rows(graph: NodeGraph, route: Route, labels: Labels, groups: Sequence[GroupBox]) -> str:
    metrics = graph[route.edge.source].metrics
    if metrics is None:
        return ""
    text = human_count(metrics.rows_out)
    width = math.ceil(text_width(text, _ON_EDGE)) + 6
    place = labels.place(route.points, width, 14)
    if place is None:
        return ""
    x, y = place
    around = [g for g in groups if g.rect.x < x < g.rect.right and g.rect.y < y < g.rect.bottom]
    ground = _shade(around[-1]) if around else "paper"
    return (
        f'<rect class="{ground}" x="{x - width / 2:g}" y="{y - 7:g}" width="{width}" height="14" rx="4"/>'
        f'<text class="rows dim" x="{x:g}" y="{y + 4:g}">{text}</text>'
    )


def _shade(group: GroupBox) -> str:
    return "odd" if len(group.path) % 2 else "even"


def _arrow(name: str, kind: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="8.5" refY="5" markerWidth="10" markerHeight="10" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path class="{kind}" d="M0 .8L10 5L0 9.2L2.2 5z"/></marker>'
    )


# -- around it -----------------------------------------------------------------------------------------------------


def _summary(graph: NodeGraph) -> str:
    facts = [f"{len(graph.nodes)} node{'' if len(graph.nodes) == 1 else 's'}"]
    metrics = [node.metrics for node in graph.nodes if node.metrics is not None]
    if metrics:
        count, word = times_done(metrics)
        if count:
            facts.append(f"{human_seconds(sum(m.seconds for m in metrics))} in {human_count(count)} {word}")
        rows, size = sum(m.state_rows for m in metrics), sum(m.state_bytes for m in metrics)
        if rows or size:
            facts.append(f"{human_count(rows)} rows of state, {human_bytes(size)}")
    return " · ".join(facts)


def _legend(graph: NodeGraph, scale: Scale, room: int) -> tuple[list[str], int, int]:
    """The legend, its height, and its width."""
    out, x, y, widest = [], 0, 0, 0
    if scale:
        texts = (scale.name, "0", scale.most)
        before, zero, after = (math.ceil(text_width(text, _FIGURES)) for text in texts)
        out.append(f'<text class="small dim" x="0" y="0">{texts[0]}</text>')
        x = before + 10
        out.append(f'<text class="small dim" x="{x}" y="0">0</text>')
        x += zero + 6
        for step in range(len(LIGHT)):
            out.append(f'<rect class="swatch h{step}" x="{x}" y="-9" width="20" height="10"/>')
            x += 20
        out.append(f'<text class="small dim" x="{x + 6}" y="0">{texts[2]}</text>')
        x += after + 30
        widest = x - 24
    kinds: dict[str, list[str]] = {}
    for kind in sorted({node.kind for node in graph.nodes}):
        kinds.setdefault(kind_colour(kind), []).append(one_line(kind))
    for colour, names in kinds.items():
        name = cut(", ".join(names), _FIGURES, 260)
        wide = 15 + math.ceil(text_width(name, _FIGURES))
        if x and x + wide > room:
            x, y = 0, y + _LEGEND_LINE
        out.append(f'<rect fill="{colour}" x="{x}" y="{y - 9}" width="10" height="10" rx="3"/>')
        out.append(f'<text class="small dim" x="{x + 15}" y="{y}">{escape(name)}</text>')
        widest = max(widest, x + wide)
        x += wide + 16
    return out, y + 12, widest


def _style() -> str:
    light = _colours(LIGHT, paper="#ffffff", ink="#1a212b", dim="#3c4554", line="#98a3b3", rim="#cfd6df",
                     back="#7b68c8", odd="#f4f6f9", even="#ffffff")  # fmt: skip
    dark = _colours(DARK, paper="#12161c", ink="#f1f4f8", dim="#c0c8d3", line="#75818f", rim="#3a434f",
                    back="#a596e8", odd="#181d24", even="#12161c")  # fmt: skip
    return _STYLE.format(
        on_edge=_ON_EDGE, label=_LABEL, detail=_DETAIL, figures=_FIGURES, caption=CAPTION_SIZE, light=light, dark=dark
    )


def _colours(
    steps: Sequence[str], *, paper: str, ink: str, dim: str, line: str, rim: str, back: str, odd: str, even: str
) -> str:
    rules = [
        (".paper", f"fill:{paper}"),
        (".ink", f"fill:{ink}"),
        (".dim", f"fill:{dim}"),
        (".card", f"stroke:{rim}"),
        (".group", f"stroke:{rim}"),
        (".odd", f"fill:{odd}"),
        (".even", f"fill:{even}"),
        (".edge", f"stroke:{line}"),
        (".back", f"stroke:{back}"),
        (".tip", f"fill:{line}"),
        (".tip-back", f"fill:{back}"),
        (".swatch", f"stroke:{rim}"),
        *((f".h{step}", f"fill:{colour}") for step, colour in enumerate(steps)),
    ]
    return "\n".join(f".hw-graph {selector}{{{rule}}}" for selector, rule in rules)
