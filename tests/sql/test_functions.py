"""The catalogue: every function gives Spark's values, and every function is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from headwater.sql.functions.catalogue import AGGREGATES, FUNCTIONS
from headwater.sql.functions.math import INEXACT

from .oracle import FIXTURES

Differences = Callable[[pa.Table, Sequence[str]], list[str]]


def _families() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (FIXTURES / "functions.sql").read_text(encoding="utf-8").splitlines():
        if line.startswith("# ---"):
            found[line.removeprefix("# --- ")] = family = []
        elif line.strip() and not line.startswith("#"):
            family.append(line)
    return found


@pytest.mark.spark
@pytest.mark.parametrize("family", _families())
def test_every_function_gives_sparks_values(family: str, differences: Differences, extremes: pa.Table) -> None:
    found = differences(extremes, _families()[family])
    assert not found, "\n".join(found)


def test_every_function_is_asked() -> None:
    names = "functions agrees queries approximate nested datetime intervals patterns strings regexps numbers aggregates windows formats forms varied"
    text = "\n".join((FIXTURES / f"{n}.sql").read_text(encoding="utf-8") for n in names.split()).lower()
    words = {name for name in (*FUNCTIONS, *AGGREGATES) if re.fullmatch(r"\w+", name)}
    asked = INEXACT | {name for name in words if re.search(rf"\b{name}\b", text)}  # those are in test_math_functions
    assert words - asked == set()
