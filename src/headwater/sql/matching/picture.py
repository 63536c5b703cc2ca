"""What a pattern becomes: the machine as text, instruction by instruction, and as pictures.

In Graphviz's language the machine has a circle for each row that is taken, with the condition it has to meet, and an
arrow for each way on from there; where several ways leave, their numbers say which one is tried first. The SVG shows
the pattern itself, as a railroad diagram (`railroad`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headwater.sql.matching.conditions import PYTHON, Conditions
from headwater.sql.matching.railroad import draw_railroad
from headwater.sql.matching.rows import pattern_columns
from headwater.sql.plan import Match
from headwater.sql.plan.text import expression_text, ordering_text
from headwater.sql.row_patterns import spelled
from headwater.sql.row_patterns.automaton import Automaton, automaton_of

__all__ = ["PatternPlan", "picture", "program_text"]

_KEY = re.compile(r"#\d+\b")


@dataclass(frozen=True)
class PatternPlan:
    """A row pattern to look at: what it is, how its conditions are computed, and the machine that searches for it.

    ``print`` shows the text, a notebook the picture.
    """

    match: Match

    def text(self) -> str:
        """The pattern, its conditions, and the machine, an instruction a line."""
        return _KEY.sub("", program_text(self.match))

    def dot(self) -> str:
        """The machine in Graphviz's language."""
        return _KEY.sub("", picture(self.match))

    def svg(self) -> str:
        """The pattern as a railroad diagram: one SVG document that needs nothing else."""
        conditions = [(name, _KEY.sub("", expression_text(node))) for name, node in self.match.definitions]
        return draw_railroad(self.match.pattern, conditions)

    def __str__(self) -> str:
        return self.text()

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>'


def program_text(match: Match) -> str:
    """The pattern, how each condition is computed, and the machine.

    >>> import pyarrow as pa
    >>> from headwater.sql.query import parse_query
    >>> schema = pa.schema([("t", pa.int64()), ("v", pa.int64())])
    >>> text = "SELECT * FROM r MATCH_RECOGNIZE (ORDER BY t MEASURES A.t AS t PATTERN (A D*) DEFINE D AS v < A.v)"
    >>> print(program_text(parse_query(text, lambda *_: schema).children[0]))
    pattern A D*
      A: any row
      D: (v#2 < A:v#2), from the rows taken so far
    order t#1 asc nulls first
    search past last row, from every row
      0  row A
      1  either 2, or else 4
      2  row D
      3  go to 1
      4  accept
    """
    conditions = Conditions.of(match, pattern_columns(match))
    lines = [f"pattern {spelled(match.pattern)}"]
    written = dict(match.definitions)
    for name, span in zip(match.variables, conditions.spans, strict=True):
        if name not in written:
            lines.append(f"  {name}: any row")
            continue
        how = "for all rows at once"
        if span == PYTHON:
            how = "row by row in Python, which is slow"
        elif span[0] >= 0:
            how = "from the rows taken so far"
        lines.append(f"  {name}: {expression_text(written[name])}, {how}")
    if match.partition:
        lines.append(f"partition {', '.join(map(expression_text, match.partition))}")
    lines.append(f"order {', '.join(map(ordering_text, match.order))}")
    if match.within is not None:
        lines.append(f"within {expression_text(match.within)}")
    lines.append(f"search {match.skip.words}, from every row")
    lines += [f"  {line.strip()}" for line in automaton_of(match.pattern, match.variables).text().splitlines()]
    return "\n".join(lines)


def picture(match: Match) -> str:
    """The machine in Graphviz's language.

    >>> import pyarrow as pa
    >>> from headwater.sql.query import parse_query
    >>> schema = pa.schema([("t", pa.int64()), ("v", pa.int64())])
    >>> text = "SELECT * FROM r MATCH_RECOGNIZE (ORDER BY t MEASURES A.t AS t PATTERN (A D*) DEFINE D AS v < A.v)"
    >>> print(picture(parse_query(text, lambda *_: schema).children[0]).splitlines()[0])
    digraph pattern {
    """
    automaton = automaton_of(match.pattern, match.variables)
    conditions = {name: expression_text(node) for name, node in match.definitions}
    takers = [at for at, one in enumerate(automaton.instructions) if one.op == "row"]
    lines = ["digraph pattern {", "  rankdir=LR;", '  start [shape=point, label=""];', "  end [shape=doublecircle];"]
    for at in takers:
        one = automaton.instructions[at]
        name = automaton.variables[one.first]
        label = f"{name}\\n{conditions[name]}" if name in conditions else name
        style = ", style=dashed" if one.second else ""
        lines.append(f"  r{at} [shape=circle, label={_quoted(label)}{style}];")
    for source, first in [("start", 0), *((f"r{at}", at + 1) for at in takers)]:
        ways = _ways(automaton, first)
        for number, (target, note) in enumerate(ways, 1):
            text = " ".join(([str(number)] if len(ways) > 1 else []) + note)
            lines.append(f"  {source} -> {target}{f' [label={_quoted(text)}]' if text else ''};")
    return "\n".join([*lines, "}"])


def _ways(automaton: Automaton, first: int) -> list[tuple[str, list[str]]]:
    """Where the machine may go from an instruction without a row, preferred ways first, and under which conditions."""
    found: dict[str, list[str]] = {}
    pending: list[tuple[int, tuple[str, ...]]] = [(first, ())]
    seen: set[int] = set()
    while pending:
        at, note = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        one = automaton.instructions[at]
        if one.op in ("row", "accept"):
            found.setdefault(f"r{at}" if one.op == "row" else "end", list(note))
        elif one.op == "either":
            pending += [(one.second, note), (one.first, note)]
        elif one.op == "jump":
            pending.append((one.first, note))
        elif one.op == "end if no row":
            pending += [(one.second, note), (at + 1, note)]
        else:
            more = {"at start": ("^",), "at end": ("$",)}.get(one.op, ())
            pending.append((at + 1, (*note, *more)))
    return list(found.items())


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
