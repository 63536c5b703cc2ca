"""A table for a notebook: plain HTML that takes its colours from the page, so it reads on dark and on light.

Everything that came from the data is escaped; cells are cut, and wide results lose their last columns, so that the
fragment stays small whatever the rows hold.
"""

from __future__ import annotations

from html import escape

import pyarrow as pa

from headwater.query.rendering.terminal import escaped, type_name
from headwater.query.rendering.values import TEXT, spell

__all__ = ["draw_html"]

_LONGEST, _MOST = 200, 50
_FAINT = "opacity:.6;font-weight:normal"


def draw_html(rows: pa.Table, *, limit: int, total: int | None = None) -> str:
    """The first ``limit`` rows as a table; ``rows`` has one more where there are more."""
    fields = list(rows.schema)[:_MOST]
    columns = [spell(column, TEXT) for column in rows.slice(0, limit).columns[:_MOST]]
    aligned = [
        "right"
        if pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_decimal(f.type)
        else "left"
        for f in fields
    ]
    head = "".join(
        f'<th style="text-align:{side}">{_cell(field.name)}<br><span style="{_FAINT}">'
        f"{_cell(type_name(field.type))}</span></th>"
        for field, side in zip(fields, aligned, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(_data(value, side) for value, side in zip(row, aligned, strict=True))}</tr>"
        for row in zip(*columns, strict=True)
    )
    return (
        f"<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<small style="opacity:.6">{_foot(rows, limit, total)}</small></div>'
    )


def _data(value: str | None, side: str) -> str:
    text = '<span style="opacity:.5">null</span>' if value is None else _cell(value)
    return f'<td style="text-align:{side}">{text}</td>'


def _cell(text: str) -> str:
    text = escaped(text)
    return escape(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def _foot(rows: pa.Table, limit: int, total: int | None) -> str:
    if rows.num_rows > limit:
        text = f"… {limit} of {'more' if total is None else total} rows"
    else:
        text = {0: "no rows", 1: "1 row"}.get(rows.num_rows, f"{rows.num_rows} rows")
    hidden = rows.num_columns - _MOST
    return text + (f", {hidden} more columns" if hidden > 0 else "")
