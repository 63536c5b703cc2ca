"""A table for a terminal: names, types, rows, fitted to the width there is.

The problem: rows are wider than screens, hold characters that are two cells wide or none, and may hold bytes that a
terminal would obey. The idea: every cell is spelled as one line of text with control characters escaped, measured in
terminal cells, and cut with `…` where there is no room. Headings and texts give way first, since a number or a time
that lost digits misleads; where that is not enough, the last columns are left out, and the line below says so.

Invariants: no line is wider than ``width``; nothing that came from the data reaches the terminal unescaped; without
colour there is no escape sequence at all.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TextIO

import pyarrow as pa

from headwater.base import settings
from headwater.base.errors import SchemaError
from headwater.base.schema import normalize_type, spark_type
from headwater.query.rendering.values import TEXT, spell

__all__ = ["PROSE", "draw", "draw_lines", "draw_texts", "escaped", "row_count", "terminal_style", "type_name"]

_GAP = "  "
_NARROWEST = 8
_WIDEST = 60
_DIM, _BOLD, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(slots=True)
class _Column:
    name: str
    kind: str
    cells: list[str | None]
    right: bool
    rigid: bool
    natural: int = 0
    least: int = 0
    width: int = 0

    def __post_init__(self) -> None:
        body = max((_cells(text) for text in map(_shown, self.cells)), default=1)
        self.natural = self.width = max(_cells(self.name), _cells(self.kind), body, 1)
        self.least = max(body, min(_cells(self.name), _NARROWEST)) if self.rigid else min(self.natural, _NARROWEST)


# Statements whose answer is a text to be read, line by line, and not a table.
PROSE = frozenset({"EXPLAIN", "SHOW CREATE TABLE"})


def draw_lines(rows: pa.Table) -> str:
    """The texts of the only column as they are, with all but line ends escaped.

    >>> draw_lines(pa.table({"plan": ["a\\n  b", "c\\x1b"]}))
    'a\\n  b\\nc\\\\x1b'
    """
    lines = (line for text in rows.column(0).to_pylist() for line in str(text).split("\n"))
    return "\n".join(map(escaped, lines))


def draw(
    rows: pa.Table, *, limit: int, total: int | None = None, width: int | None = None, colour: bool = False
) -> str:
    """The first ``limit`` rows as lines of text.

    Parameters
    ----------
    rows
        The first rows; one more than ``limit`` says that there are more.
    limit
        How many to show.
    total
        How many there are in all, where that is known.
    width
        The cells of a line; without it nothing is cut.
    colour
        Whether to dim types and nulls.
    """
    columns = [
        _Column(
            escaped(field.name), type_name(field.type), _texts(column), _is_number(field.type), _is_rigid(field.type)
        )
        for field, column in zip(rows.schema, rows.slice(0, limit).columns, strict=True)
    ]
    shown = _fit(columns, width)
    foot = _foot(rows.num_rows, limit, total, hidden=len(columns) - len(shown))
    if not columns:
        return foot
    return "\n".join([*_lines(shown, colour=colour), foot if width is None else _cut(foot, width)])


def draw_texts(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[int] = (),
    width: int | None = None,
    colour: bool = False,
) -> str:
    """Rows of text under headings, in the same manner but without types.

    >>> print(draw_texts(["name", "rows"], [["orders", "12"], ["cards", "7"]], right=[1]))
    name    rows
    ──────  ────
    orders    12
    cards      7
    """
    columns = [
        _Column(escaped(heading), "", [escaped(row[i]) for row in rows], right=i in right, rigid=i in right)
        for i, heading in enumerate(headings)
    ]
    return "\n".join(_lines(_fit(columns, width), colour=colour))


def _lines(columns: list[_Column], *, colour: bool) -> list[str]:
    bold, dim = (_BOLD, _DIM) if colour else ("", "")
    lines = [_line([_padded(c.name, c) for c in columns], bold)]
    if any(c.kind for c in columns):
        lines.append(_line([_padded(c.kind, c) for c in columns], dim))
    lines.append(_line(["─" * c.width for c in columns], dim))
    rows = zip(*(c.cells for c in columns), strict=True)
    return lines + [
        _GAP.join(_cell(c, text, colour=colour) for c, text in zip(columns, row, strict=True)).rstrip(" ")
        for row in rows
    ]


def terminal_style(stream: TextIO) -> tuple[int, bool]:
    """The width of the terminal behind ``stream`` (80 where there is none), and whether to colour."""
    is_terminal = _is_terminal(stream)
    colour = is_terminal and settings.current().wants_color(stream)
    return max(shutil.get_terminal_size((80, 24)).columns, 2 * _NARROWEST), colour


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # None, or a closed stream
        return False


def type_name(kind: pa.DataType) -> str:
    """A type as Spark writes it, and as Arrow does where Spark has none.

    >>> type_name(pa.list_(pa.int32())), type_name(pa.duration("us"))
    ('array<int>', 'interval day to second')
    """
    if pa.types.is_null(kind):
        return "void"
    if pa.types.is_duration(kind):
        return "interval day to second"
    try:
        return spark_type(normalize_type(kind)).replace("`", "")
    except SchemaError:
        return escaped(str(kind))


def escaped(text: str) -> str:
    """Text on one line that a terminal only shows: control and direction characters are written out.

    >>> escaped("a\\nb\\x1b[31m")
    'a\\\\nb\\\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(_escape(character) for character in text)


def _escape(character: str) -> str:
    # Joiners hold an emoji or a syllable together, and a space is a space; other invisible characters are shown.
    if character.isprintable() or character in "\u200c\u200d\u00a0\u3000":
        return character
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}")


def row_count(rows: int) -> str:
    return {0: "no rows", 1: "1 row"}.get(rows, f"{rows} rows")


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    return [None if text is None else escaped(text) for text in spell(column, TEXT)]


def _shown(text: str | None) -> str:
    return "null" if text is None else text


def _is_number(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind))


def _is_rigid(kind: pa.DataType) -> bool:
    """Whether half a value would mislead."""
    return _is_number(kind) or bool(pa.types.is_temporal(kind) or pa.types.is_boolean(kind))


def _foot(rows: int, limit: int, total: int | None, *, hidden: int) -> str:
    columns = f", {hidden} more column{'' if hidden == 1 else 's'}" if hidden else ""
    if rows > limit:
        return f"… {limit} of {'more' if total is None else total} rows{columns}"
    return f"({row_count(rows)}{columns})"


def _fit(columns: list[_Column], width: int | None) -> list[_Column]:
    """The columns that have room, with their widths; the last ones give way."""
    if width is None:
        return columns
    shown = list(columns)
    while shown:
        room = width - len(_GAP) * (len(shown) - 1)
        if sum(c.least for c in shown) <= room:
            _widen(shown, room)
            return shown
        if len(shown) == 1:
            shown[0].width = min(shown[0].natural, width)
            return shown
        shown.pop()
    return shown


def _widen(columns: list[_Column], room: int) -> None:
    """Give each column what it wants, up to one cap for all, the highest that fits."""
    # One long text may take the line, but several of them make a wall.
    highest = max(c.natural for c in columns) if sum(c.natural > _WIDEST for c in columns) < 2 else _WIDEST
    low, high = 0, highest
    while low < high:
        cap = (low + high + 1) // 2
        if sum(max(c.least, min(c.natural, cap)) for c in columns) <= room:
            low = cap
        else:
            high = cap - 1
    for column in columns:
        column.width = max(column.least, min(column.natural, low))


def _line(cells: list[str], style: str) -> str:
    text = _GAP.join(cells).rstrip(" ")
    return f"{style}{text}{_PLAIN}" if style else text


def _cell(column: _Column, text: str | None, *, colour: bool) -> str:
    padded = _padded(_shown(text), column)
    return f"{_DIM}{padded}{_PLAIN}" if text is None and colour else padded


def _padded(text: str, column: _Column) -> str:
    text = _cut(text, column.width)
    space = " " * (column.width - _cells(text))
    return space + text if column.right else text + space


def _cut(text: str, width: int) -> str:
    if _cells(text) <= width:
        return text
    from rich.cells import split_graphemes

    kept, used = [], 0
    for start, end, cells in split_graphemes(text)[0]:
        if used + cells > width - 1:
            break
        kept.append(text[start:end])
        used += cells
    return "".join(kept) + "…"


def _cells(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return int(cell_len(text))
