"""Markup: small pieces of HTML for notebooks. Whatever comes in is escaped; nothing is styled but what a notebook
styles itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["facts", "listing"]


def facts(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A title with named facts below it; those that are None or empty are left out.

    >>> facts("a<b", [("rows", 3), ("note", "")])
    '<div><b>a&lt;b</b><table><tbody><tr><th>rows</th><td>3</td></tr></tbody></table></div>'
    """
    shown = [(name, value) for name, value in rows if value is not None and str(value)]
    body = "".join(f"<tr><th>{escape(name)}</th><td>{_lines(value)}</td></tr>" for name, value in shown)
    return f"<div><b>{escape(title)}</b><table><tbody>{body}</tbody></table></div>"


def listing(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    """A title with a table below it, and a note below that.

    >>> print(listing("lake", ["name"], [["<x>"]], "1 more").replace("<tbody>", "\\n<tbody>"))
    <div><b>lake</b><table><thead><tr><th>name</th></tr></thead>
    <tbody><tr><td>&lt;x&gt;</td></tr></tbody></table>1 more</div>
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    body = "".join(f"<tr>{''.join(f'<td>{_lines(value)}</td>' for value in row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><b>{escape(title)}</b>{table}{escape(note)}</div>"


def _lines(value: object) -> str:
    return escape("" if value is None else str(value)).replace("\n", "<br>")
