"""How much of Spark SQL is answered: Spark's own examples of its functions, asked here and there.

The problem: "supports Spark SQL" says nothing. The idea: Spark documents each of its functions with examples, and a
session has them (``SHOW FUNCTIONS``, ``DESCRIBE FUNCTION EXTENDED``). Each example is run by Spark and by a lake, and
is *right* where types and rows are the same, *different* where they are not, *refused* where a typed error says why
there is no answer, and a *crash* where anything else is raised. Some families are left out, each for its reason
(`FAMILIES`), and so are examples that Spark itself stops at.

`read_examples` needs a session, `Example.family` says what is left out, `outcome` compares, and `figures` makes the
table.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa

from headwater.base.errors import HeadwaterError
from headwater.base.schema import spark_type

__all__ = ["FAMILIES", "Example", "Outcome", "answer_of_spark", "digest", "figures", "outcome", "read_examples"]

Outcome = Literal["right", "different", "refused", "crash"]

FAMILIES: Mapping[str, tuple[str, str]] = {
    "sketches": (
        r"\w*(sketch|theta|hll_|kll_|approx_top_k|count_min)\w*|tuple_\w+|histogram_numeric",
        "binaries of a library's own format",
    ),
    "spatial": (r"st_\w+", "there are no geometries here"),
    "XML": (r"xpath\w*|\w*_?xml\w*", "there is no XML here"),
    "reflection": (r"(try_)?reflect|java_method", "they call Java"),
    "VARIANT": (r"\w*variant\w*|(try_)?parse_json", "there is no VARIANT here"),
    "another answer at each run": (
        r"rand\w*|random|uuid|shuffle|uniform|current_(time|timestamp|date)|now|localtimestamp|curdate|monotonic\w+",
        "nothing to compare",
    ),
    "the session": (
        r"current_(user|[cdps]\w+|timezone)|(session_)?user|version|(input_file|spark|python)_\w+|collat\w+|sql_keywords",
        "they tell of Spark's session, its files and collations",
    ),
}
"""Functions that are left out: a pattern of their names, and the reason."""

# Examples of other functions that belong to these families, by what is in their text.
_BY_TEXT = {
    "VARIANT": r"parse_json|variant",
    "the session": r"^SET\s|escapedStringLiterals|\\\\users|\\\\Users|unix_timestamp\(\)|\bcollate\b",
    "another answer at each run": r"aes_encrypt\('[^']*', '[^']*'(, 'GCM'|, 'CBC', 'DEFAULT')?\)\)|mode\(col, false\)",
}


@dataclass(frozen=True, slots=True)
class Example:
    """One example: ``function`` is whose documentation it stands in."""

    function: str
    text: str

    @property
    def family(self) -> str | None:
        """The family for which it is left out."""
        for family, (pattern, _) in FAMILIES.items():
            if re.fullmatch(pattern, self.function):
                return family
        return next((f for f, p in _BY_TEXT.items() if re.search(p, self.text, re.IGNORECASE)), None)

    @property
    def key(self) -> str:
        """A short name that is the same as long as the text is."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


def read_examples(session: Any) -> list[Example]:
    """The examples of all functions that the session knows."""
    found = []
    for (name,) in session.sql("SHOW FUNCTIONS").collect():
        quoted = name if re.fullmatch(r"\w+", name) else f"`{name}`"
        lines = session.sql(f"DESCRIBE FUNCTION EXTENDED {quoted}").collect()
        usage = "\n".join(row[0] for row in lines)
        part = re.split(r"\n\s*(?:Note|Since|Deprecated|Group|Arguments):", usage.partition("Examples:")[2])[0]
        texts = re.findall(r"^\s*> (.*?;)\s*$", part, re.MULTILINE | re.DOTALL)
        found += [Example(name, text.rstrip(";").strip()) for text in texts]
    return found


def answer_of_spark(session: Any, example: Example) -> str | None:
    """The digest of Spark's answer; None where it stops."""
    try:
        frame = session.sql(example.text)
        return digest([f.dataType.simpleString() for f in frame.schema], frame.toArrow())
    except Exception:  # noqa: BLE001 - of many kinds: some types have no form in Arrow either
        return None


def digest(types: Iterable[str], rows: pa.Table) -> str:
    """A short hash of types and rows, in any order; doubles count by 12 digits."""
    columns = [_values(c) for c in rows.columns]
    every = sorted(map(repr, zip(*columns, strict=True))) if columns else []
    return hashlib.sha256(repr((list(types), every)).encode()).hexdigest()[:12]


def outcome(answer: Callable[[str], pa.Table], example: Example, expected: str) -> tuple[Outcome, str]:
    """What a reader makes of an example, and why: ``answer`` gives the rows of a text."""
    try:
        rows = answer(example.text)
    except HeadwaterError as error:
        return "refused", str(error).splitlines()[0]
    except Exception as error:  # noqa: BLE001 - whatever else it is, it is what is looked for
        return "crash", repr(error)
    types = ["void" if pa.types.is_null(f.type) else spark_type(f.type).replace("`", "") for f in rows.schema]
    same = digest(types, rows) == expected
    return ("right", "") if same else ("different", f"{types} {rows.to_pylist()}")


def figures(outcomes: Iterable[tuple[str | None, Outcome]]) -> str:
    """A table of what came of examples of families (None: those that count), as Markdown."""
    counted: Counter[Outcome] = Counter()
    left_out: dict[str, Counter[Outcome]] = {family: Counter() for family in FAMILIES}
    for family, found in outcomes:
        (counted if family is None else left_out[family])[found] += 1
    lines = ["| examples | right | different | refused | crash |", "|---|---|---|---|---|"]
    share = counted["right"] / max(1, counted.total())
    lines.append(_line(f"**all but these families: {counted.total()}, {share:.1%} right**", counted))
    lines += [_line(f"{name} ({FAMILIES[name][1]}): {found.total()}", found) for name, found in left_out.items()]
    return "\n".join(lines) + "\n"


def _line(title: str, found: Counter[Outcome]) -> str:
    return f"| {title} | {found['right']} | {found['different']} | {found['refused']} | {found['crash']} |"


def _values(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())  # a count of days has no bounds, Python's dates have
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [_comparable(v) for v in column.to_pylist()]


def _comparable(value: Any) -> object:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.12g}") + 0.0
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, dict):
        return tuple((k, _comparable(v)) for k, v in value.items())
    return value
