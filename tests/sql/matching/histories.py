"""Random row patterns with conditions and measures, as SQL and as functions of the plain matcher; and random rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from tests.sql.matching.plain import Condition, View

from headwater.sql.row_patterns import parse_pattern, spelled, variables_of

SCHEMA = pa.schema(
    [
        ("g", pa.string()),
        ("ts", pa.int64()),
        ("id", pa.int64()),
        ("x", pa.int32()),
        ("s", pa.string()),
        ("d", pa.float64()),
    ]
)
_NAMES = ("A", "B", "C")
Meaning = tuple[str, Condition]


def rows(dice: random.Random, partitions: int, longest: int) -> list[dict[str, Any]]:
    """Rows of some partitions, with ties, nulls and NaN."""
    found: list[dict[str, Any]] = []
    for part in range(partitions):
        for _ in range(dice.randint(1, longest)):
            found.append(
                {
                    "g": None if part == 0 else f"g{part}",
                    "ts": None if dice.random() < 0.05 else dice.randint(0, longest),
                    "id": len(found),
                    "x": None if dice.random() < 0.1 else dice.randint(0, 4),
                    "s": None if dice.random() < 0.1 else dice.choice(["", "a", "b", "ä", "ab"]),
                    "d": None if dice.random() < 0.05 else dice.choice([0.0, -0.0, 0.5, 1.5, 2.0, float("nan")]),
                }
            )
    dice.shuffle(found)
    return found


def pattern(dice: random.Random, depth: int = 3) -> str:
    """A random pattern."""
    kind = dice.random()
    if depth == 0 or kind < 0.3:
        return dice.choice(_NAMES)
    if kind < 0.6:
        return " ".join(_part(dice, depth) for _ in range(dice.randint(2, 3)))
    if kind < 0.72:
        return "(" + " | ".join(pattern(dice, depth - 1) for _ in range(2)) + ")"
    if kind < 0.77:
        return f"PERMUTE({', '.join(pattern(dice, depth - 1) for _ in range(dice.randint(2, 3)))})"
    if kind < 0.8:
        return dice.choice(["()", "^", "$", "^ A", "B $"])
    return _part(dice, depth)


def _part(dice: random.Random, depth: int) -> str:
    inner = pattern(dice, depth - 1)
    kind = dice.random()
    if kind < 0.35:
        return f"({inner})"
    if kind < 0.4:
        return "{- " + inner + " -}"
    low, high = dice.randint(0, 2), dice.randint(1, 3)
    bounds = dice.choice(
        ["*", "+", "?", "*", "+", f"{{{max(low, 1)}}}", f"{{{low},}}", f"{{,{high}}}", f"{{{min(low, high)},{high}}}"]
    )
    return f"({inner}){bounds}{dice.choice(['', '?'])}"


def _three(op: str) -> Callable[[Any, Any], Any]:
    def compare(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return None
        less, same = _order(a, b)
        return {"<": less, "<=": less or same, ">": not less and not same, ">=": not less, "=": same, "<>": not same}[
            op
        ]

    return compare


def _order(a: Any, b: Any) -> tuple[bool, bool]:
    if isinstance(a, str):
        return a.encode() < b.encode(), a == b
    if a != a or b != b:  # NaN is above everything, and equal to itself
        return a == a, a != a and b != b
    return a < b, a == b


def _both(a: Any, b: Any) -> Any:
    return False if a is False or b is False else None if a is None or b is None else True


def _either(a: Any, b: Any) -> Any:
    return True if a is True or b is True else None if a is None or b is None else False


def _plus(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a + b


class Writer:
    """Conditions and measures over the variables of a pattern; ``sets`` has the subsets too."""

    def __init__(self, dice: random.Random, sets: dict[str, tuple[str, ...]]) -> None:
        self.dice, self.sets = dice, sets

    def condition(self, variable: str, depth: int = 2) -> Meaning:
        dice = self.dice
        kind = dice.random()
        if depth and kind < 0.35:
            (one, f), (two, g) = self.condition(variable, depth - 1), self.condition(variable, depth - 1)
            if kind < 0.15:
                return f"({one} OR {two})", lambda v: _either(f(v), g(v))
            return f"({one} AND {two})", lambda v: _both(f(v), g(v))
        if depth and kind < 0.4:
            one, f = self.condition(variable, depth - 1)
            return f"NOT ({one})", lambda v: None if (found := f(v)) is None else not found
        if kind < 0.5:
            one, f = self.number(variable)
            return f"{one} IS NULL", lambda v: f(v) is None
        op = dice.choice(["<", "<=", ">", ">=", "=", "<>"])
        compare = _three(op)
        if kind < 0.62:
            (one, f), (two, g) = self.text(variable), self.text(variable)
        elif kind < 0.7:
            (one, f), (two, g) = self.double(variable), self.double(variable)
        elif kind < 0.71:
            least = dice.randint(1, 3)
            return f"MATCH_NUMBER() {op} {least}", lambda v: compare(v.number, least)
        elif kind < 0.73:
            label = dice.choice(_NAMES)
            return f"LAST(CLASSIFIER(), 1) {op} '{label}'", lambda v: compare(v.label(skipped=1), label)
        else:
            (one, f), (two, g) = self.number(variable), self.number(variable)
        return f"{one} {op} {two}", lambda v: compare(f(v), g(v))

    def place(self, variable: str | None, column: str, *, final: bool = False) -> Meaning:
        """A column in some row."""
        dice = self.dice
        name = dice.choice([*self.sets, "", "", variable or ""])
        names = self.sets.get(name, ())
        written = f"{name}.{column}" if name else column
        kind = dice.random()
        if kind < 0.4:
            return written, lambda v: v.value(column, names)
        word = "FINAL " if final and dice.random() < 0.5 else ""
        place: dict[str, Any] = {
            "first": dice.random() < 0.5,
            "skipped": dice.choice([0, 0, 1, 2]),
            "final": bool(word),
        }
        text = f"{word}{'FIRST' if place['first'] else 'LAST'}({written}, {place['skipped']})"
        if kind < 0.6:
            return text, lambda v: v.value(column, names, **place)
        shift = dice.choice([1, 1, 2])
        move = shift if kind < 0.75 else -shift
        outer = "NEXT" if kind < 0.75 else "PREV"
        if dice.random() < 0.5:
            return f"{outer}({written}, {shift})", lambda v: v.value(column, names, shift=move)
        return f"{outer}({text}, {shift})", lambda v: v.value(column, names, shift=move, **place)

    def number(self, variable: str | None, *, final: bool = False) -> Meaning:
        dice = self.dice
        kind = dice.random()
        if kind < 0.2:
            constant = dice.randint(0, 4)
            return str(constant), lambda v: constant
        if kind < 0.3:
            (one, f), (two, g) = self.place(variable, "x", final=final), self.place(variable, "x", final=final)
            return f"({one} + {two})", lambda v: _plus(f(v), g(v))
        if kind < 0.5:
            return self.aggregate(final=final)
        if kind < 0.57:
            one, f = self.place(variable, "x", final=final)
            return f"coalesce({one}, 1)", lambda v: 1 if (found := f(v)) is None else found
        return self.place(variable, "x", final=final)

    def aggregate(self, *, final: bool = False) -> Meaning:
        dice = self.dice
        name = dice.choice([*self.sets, ""])
        names = self.sets.get(name, ())
        word = "FINAL " if final and dice.random() < 0.5 else ""
        whole = bool(word)
        column = f"{name}.x" if name else "x"
        kind = dice.choice(["count", "count(*)", "sum", "min", "max", "sum where"])
        if kind == "count(*)":
            return f"{word}count({name + '.' if name else ''}*)", lambda v: len(v.where(names, final=whole))
        if kind == "count":
            return f"{word}count({column})", lambda v: len(v.values("x", names, final=whole))
        if kind == "sum where":
            text = f"{word}sum({column}) FILTER (WHERE {column} > 1)"
            return (
                text,
                lambda v: sum(found) if (found := [x for x in v.values("x", names, final=whole) if x > 1]) else None,
            )
        functions: dict[str, Callable[[list[Any]], Any]] = {"sum": sum, "min": min, "max": max}
        function = functions[kind]
        return (
            f"{word}{kind}({column})",
            lambda v: function(found) if (found := v.values("x", names, final=whole)) else None,
        )

    def text(self, variable: str | None, *, final: bool = False) -> Meaning:
        if self.dice.random() < 0.25:
            constant = self.dice.choice(["", "a", "b"])
            return f"'{constant}'", lambda v: constant
        return self.place(variable, "s", final=final)

    def double(self, variable: str | None, *, final: bool = False) -> Meaning:
        if self.dice.random() < 0.25:
            return "CAST(1.5 AS DOUBLE)", lambda v: 1.5
        one, f = self.place(variable, "d", final=final)
        if self.dice.random() < 0.3:
            return f"({one} * 2D)", lambda v: None if (found := f(v)) is None else found * 2
        return one, f


@dataclass
class Case:
    """One MATCH_RECOGNIZE: its SQL, and what the plain matcher needs."""

    sql: str
    pattern: str
    conditions: dict[str, Condition]
    measures: list[tuple[str, Condition]]
    skip: tuple[str, tuple[str, ...]]
    every_row: bool
    empty: bool
    unmatched: bool
    within: int | None


def case(dice: random.Random) -> Case:
    """A random MATCH_RECOGNIZE over a table ``t`` of `SCHEMA`."""
    written = pattern(dice)
    if dice.random() < 0.7:
        written = f"{dice.choice(_NAMES)} {written}"
    parsed = parse_pattern(written)
    assert parse_pattern(spelled(parsed)) == parsed
    names = tuple(dict.fromkeys(variables_of(parsed)))
    sets: dict[str, tuple[str, ...]] = {n: (n,) for n in names}
    subset = names[: dice.randint(1, len(names))] if names and dice.random() < 0.3 else ()
    if subset:
        sets["U"] = subset
    writer = Writer(dice, sets)
    defined = {n: writer.condition(n) for n in names if dice.random() < 0.85}
    every_row = dice.random() < 0.5
    exclusion = "{-" in written
    shown = dice.choice(["", " OMIT EMPTY MATCHES", "" if exclusion else " WITH UNMATCHED ROWS"]) if every_row else ""
    measures: list[tuple[str, str, Condition]] = [
        ("m", "MATCH_NUMBER()", lambda v: v.number),
        ("c", "CLASSIFIER()", lambda v: v.label()),
        ("first_id", "FIRST(id)", lambda v: v.value("id", first=True)),
        ("last_id", "FINAL LAST(id)", lambda v: v.value("id", final=True)),
        ("n", "count(*)", lambda v: len(v.where(()))),
    ]
    for number in range(dice.randint(0, 3)):
        kind = dice.choice([writer.number, writer.number, writer.text, writer.double])
        measures.append((f"v{number}", *kind(None, final=True)))
    skip: tuple[str, tuple[str, ...]] = (dice.choice(["past last row", "next row"]), ())
    if names and dice.random() < 0.2:
        chosen = dice.choice(list(sets))
        skip = (dice.choice(["first", "last"]), sets[chosen])
        to = f"TO {skip[0].upper()} {chosen}"
    else:
        to = {"past last row": "PAST LAST ROW", "next row": "TO NEXT ROW"}[skip[0]]
    within = dice.randint(0, 4) if dice.random() < 0.2 else None
    parts = [
        "PARTITION BY g ORDER BY ts",
        "MEASURES " + ", ".join(f"{text} AS {name}" for name, text, _ in measures),
        ("ALL ROWS PER MATCH" + shown) if every_row else "ONE ROW PER MATCH",
        f"AFTER MATCH SKIP {to}",
        f"PATTERN ({written})",
        "" if within is None else f"WITHIN {within}",
        f"SUBSET U = ({', '.join(subset)})" if subset else "",
        "DEFINE " + ", ".join(f"{n} AS {text}" for n, (text, _) in defined.items()) if defined else "",
    ]
    sql = f"SELECT * FROM t MATCH_RECOGNIZE ({' '.join(p for p in parts if p)})"
    return Case(
        sql,
        written,
        {n: f for n, (_, f) in defined.items()},
        [(name, f) for name, _, f in measures],
        skip,
        every_row,
        "OMIT" not in shown,
        "UNMATCHED" in shown,
        within,
    )


def first_of(view: View) -> Any:
    """The id of the first row of a match."""
    return view.value("id", first=True)
