"""Queries of the fixtures, taken apart: what they select, and what follows.

Queries that differ only in what they select become one, so that hundreds of calls are a handful of views and of Spark's jobs; and where a
call is refused, the others beside it are still asked. What cannot be taken apart (common tables, generators, ``*``) stays a query of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from headwater.sql.functions.catalogue import AGGREGATES
from headwater.sql.tokens import Token, tokenize

__all__ = ["Kind", "merged", "select"]

Kind = tuple[str, str]
_GENERATORS = re.compile(r"\b(explode|explode_outer|posexplode|posexplode_outer|inline|inline_outer|stack)\s*\(")
_ORDERED = re.compile(r"\b(order by|limit|having|qualify|union|except|intersect|offset)\b")
_WINDOWS = frozenset(n for n, f in AGGREGATES.items() if f.kind == "window")


def select(items: Sequence[str], rest: str) -> str:
    """A query of items, with the names c0, c1, …"""
    return "SELECT " + ", ".join(f"{item} AS c{i}" for i, item in enumerate(items)) + rest


def merged(lines: Iterable[str]) -> tuple[dict[Kind, list[str]], list[str]]:
    """Items by what follows them, and the queries that stay as they are.

    >>> merged(["select g, sum(a) from r group by g", "select g, max(b) m from r group by g", "select * from r"])
    ({('aggregate', ' from r group by g'): ['g', 'sum(a)', 'max(b)']}, ['select * from r'])
    """
    groups: dict[Kind, list[str]] = {}
    alone = []
    for line in lines:
        parts = _parts(line.rstrip("; "))
        if parts is None:
            alone.append(line.rstrip("; "))
            continue
        items, rest = parts
        text = ", ".join(items).lower()
        windows = " over (" in text or " over w" in text
        calls = re.findall(r"\b(\w+)\s*\(", text)
        kind = "window" if windows else "aggregate" if set(calls) & set(AGGREGATES) - _WINDOWS else "plain"
        group = groups.setdefault((kind, rest), [])
        group += [i for i in items if i not in group]
    return groups, alone


def _parts(line: str) -> tuple[list[str], str] | None:
    tokens = list(tokenize(line))
    if tokens[0].word != "SELECT" or tokens[1].word in ("DISTINCT", "ALL") or _GENERATORS.search(line):
        return None
    depth, start = 0, tokens[1].start
    items: list[str] = []
    chosen: list[Token] = []
    rest = ""
    for token in tokens[1:]:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.text, 0)
        if depth == 0 and token.word in ("CASE", "END"):
            return None
        if depth == 0 and (token.text == "," or token.word == "FROM"):
            items.append(_without_alias(line, start, chosen))
            chosen = []
            start = token.end
            if token.word == "FROM":
                rest = " " + line[token.start :]
                break
            continue
        chosen.append(token)
    else:
        items.append(_without_alias(line, start, chosen))
    if any("(select " in i.lower() for i in items):
        return None
    if _ORDERED.search(rest.lower()) or any("*" in i and i.strip().endswith("*") for i in items):
        return None
    return items, rest


def _without_alias(line: str, start: int, tokens: Sequence[Token]) -> str:
    last = tokens[-1]
    end = last.end
    if len(tokens) > 2 and tokens[-2].word == "AS":
        end = tokens[-3].end
    elif len(tokens) > 1 and last.kind in ("word", "name"):
        before = tokens[-2]
        plain = len(tokens) == 2 and before.kind in ("word", "name") and before.word != "NOT"
        end = before.end if plain or before.text == ")" else end
    return line[start:end].strip()
