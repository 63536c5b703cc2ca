"""`headwater search`: the rows of a table that match a query, best first, by a search index or several."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from headwater.base.errors import InputError
from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from headwater.search.result import SearchResult
    from headwater.search.several import SeveralResult

SUMMARY = "search a table by one of its search indexes"


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument("index", metavar="INDEX", help="the index's name, or several with commas between them")
    parser.add_argument("query", metavar="QUERY", help='words, "phrases", AND, OR, NOT, field:value, wild*cards')
    parser.add_argument("--columns", metavar="A,B", help="columns to show (default: all)")
    parser.add_argument("-k", metavar="N", type=int, default=10, help="how many rows (default: 10)")
    parser.add_argument("--offset", metavar="N", type=int, default=0, help="rows to skip")
    parser.add_argument("--filter", metavar="SQL", help="a condition that rows have to meet as well")
    parser.add_argument("--order-by", metavar="COLUMN", help="order by a column instead of the score")
    parser.add_argument("--descending", action="store_true", help="largest values first, with --order-by")
    parser.add_argument("--and", dest="conjunction", action="store_true", help="all words have to match, not just one")
    parser.add_argument("--lenient", action="store_true", help="leave out what cannot be read, and say what")
    parser.add_argument("--version", metavar="N", type=int, help="an older version of the table")
    parser.add_argument("--count", action="store_true", help="only say how many rows match")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._verbs import Exit

    columns = None if arguments.columns is None else [c for c in arguments.columns.split(",") if c]
    default: Any = "and" if arguments.conjunction else "or"
    with open_lake(arguments) as lake:
        if "," in arguments.index:
            for option in ("filter", "order_by", "version", "count"):
                if getattr(arguments, option) not in (None, False):
                    raise InputError.bad_argument(f"--{option.replace('_', '-')}", arguments.index, "one index")
            names = [name for name in arguments.index.split(",") if name]
            several = lake.search(
                arguments.query, names, columns=columns, k=arguments.k, offset=arguments.offset, default=default,
                lenient=arguments.lenient,
            )  # fmt: skip
            _print_several(screen, arguments, several)
            return Exit.OK
        index = lake.index(arguments.index)
        if arguments.version is not None:
            index = index.at(arguments.version)
        if arguments.count:
            counted = index.count(arguments.query, filter=arguments.filter, default=default)
            if screen.as_json:
                screen.document({"index": arguments.index, "query": arguments.query, "count": counted})
            else:
                screen.data(f"{counted}")
            return Exit.OK
        found = index.search(
            arguments.query,
            columns=columns,
            k=arguments.k,
            offset=arguments.offset,
            filter=arguments.filter,
            order_by=arguments.order_by,
            descending=arguments.descending,
            default=default,
            lenient=arguments.lenient,
        )
        if screen.as_json:
            _print_json(screen, arguments, found)
        else:
            _print_table(screen, found)
    return Exit.OK


def _print_json(screen: Screen, arguments: argparse.Namespace, found: SearchResult) -> None:
    rows = found.to_pylist()
    snippets = _snippets(found)
    listed = []
    for n, row in enumerate(rows):
        score = found.scores[n] if n < len(found.scores) else None
        listed.append({"score": score, "row": row, "snippets": {c: texts[n] for c, texts in snippets.items()}})
    screen.document(
        {
            "index": arguments.index,
            "query": arguments.query,
            "frontier": str(found.frontier),
            "total": found.total,
            "ignored": [{"at": one.at, "text": one.text, "reason": one.reason} for one in found.ignored],
            "hits": listed,
        }
    )


def _print_several(screen: Screen, arguments: argparse.Namespace, found: SeveralResult) -> None:
    from headwater.cli._listing import print_listing

    rows = found.to_arrow()
    if screen.as_json:
        listed = [
            {"index": row.pop("_index"), "score": row.pop("_score"), "row": row, "snippets": snippets}
            for row, snippets in zip(rows.to_pylist(), found.snippets(), strict=True)
        ]
        document = {"query": arguments.query, "frontier": str(found.frontier), "totals": dict(found.totals)}
        screen.document({"indexes": list(found.indexes), **document, "hits": listed})
        return
    shown = []
    for row, snippets in zip(rows.to_pylist(), found.snippets(), strict=True):
        name, score = row.pop("_index"), row.pop("_score")
        cells = [_plain(snippets[c]) if c in snippets else "" if v is None else str(v) for c, v in row.items()]
        shown.append((name, f"{score:.3f}", *cells))
    print_listing(screen, ("index", "score", *rows.schema.names[2:]), shown, right={1})
    totals = ", ".join(f"{total:,} of {name}" for name, total in found.totals.items())
    screen.say(f"{len(found)} rows of {totals} at {found.frontier}")


def _print_table(screen: Screen, found: SearchResult) -> None:
    from headwater.cli._listing import print_listing

    snippets = {c: [_plain(t) for t in texts] for c, texts in _snippets(found).items()}
    rows = []
    for n, row in enumerate(found.to_pylist()):
        score = found.scores[n] if n < len(found.scores) else None
        cells = [snippets[c][n] if c in snippets else "" if v is None else str(v) for c, v in row.items()]
        rows.append((f"{score:.3f}" if isinstance(score, float) else str(score), *cells))
    print_listing(screen, ("score", *found.columns), rows, right={0})
    for one in found.ignored:
        screen.say(f"left out: {one.text!r} at {one.at}: {one.reason}")
    screen.say(f"{len(found)} of {found.total:,} rows at {found.frontier}")


def _snippets(found: SearchResult) -> dict[str, list[str]]:
    """What was found in each text column, as HTML."""
    fields = found.reader.meant.fields
    text = [c for c in found.columns if (n := fields.number(c)) is not None and fields[n].kind == "text"]
    return {c: found.snippets(c) for c in text}


def _plain(html: str) -> str:
    """A snippet for a terminal."""
    from html import unescape

    text = unescape(re.sub(r"</?b>", lambda found: "»" if found[0] == "</b>" else "«", html))
    return re.sub(r"\s+", " ", text).strip()
