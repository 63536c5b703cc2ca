"""Texts: code points beyond U+FFFF, combining marks, empty texts, null bytes; patterns with every wildcard."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from .agreement import differences

_WHERE = [-9, -3, -1, 0, 1, 2, 5]
_TEXTS = [
    "length(s)",
    "octet_length(s)",
    "bit_length(s)",
    "upper(s)",
    "lower(s)",
    "reverse(s)",
    "s || t",
    "concat(s, '-', t, 'ß')",
    "concat_ws(', ', s, t)",
]
_TEXTS += [
    "concat_ws('-', s)",
    "concat_ws('', t, s, 'x')",
    "concat_ws('a', NULL, s)",
    "trim(s)",
    "ltrim(s)",
    "rtrim(s)",
    "trim(BOTH 'aß' FROM s)",
    "btrim(s, '')",
]
_TEXTS += [f"substring(s, {a})" for a in _WHERE] + [
    f"substring(s, {a}, {n})" for a in _WHERE for n in (-1, 0, 1, 2, 2147483647)
]
_TEXTS += [f"{end}(s, {n})" for end in ("left", "right") for n in (-1, 0, 1, 3)] + [
    f"{pad}(s, {n}, '{p}')" for pad in ("lpad", "rpad") for n in (-1, 0, 3, 7) for p in ("*", "ab", "")
]
_TEXTS += [
    "replace(s, 'a', 'bb')",
    "replace(s, '')",
    "replace(s, 'ß')",
    "replace(s, 'aa', 'a')",
    "repeat(s, 3)",
    "repeat(s, -1)",
    "instr(s, 'b')",
    "instr(s, 'ß')",
    "instr(s, '')",
]
_TEXTS += [
    "split(s, 'a')",
    "split(s, ',')",
    "split(s, 'ab', -1)",
    "split(s, ',', 2)",
    "split(s, '[,b]')",
    "contains(s, 'a')",
    "startswith(s, 'a')",
    "endswith(s, '')",
    "contains(s, t)",
]
_TEXTS += [
    "s = t",
    "s < t",
    "s >= 'b'",
    "s <=> t",
    "s IN ('a', 'ß', t)",
    "s IN ('a', 'b', 'ab')",
    "s NOT IN ('a', NULL)",
    "greatest(s, t)",
    "least(s, t, 'b')",
    "CAST(s AS binary) < CAST(t AS binary)",
]
_TEXTS += [
    "coalesce(s, t, 'x')",
    "CASE WHEN s < t THEN s WHEN t = '' THEN 'e' ELSE t END",
    "nullif(s, t)",
    "if(length(s) > 1, substring(s, 1, 1), NULL)",
    "initcap(s)",
    "translate(s, 'ab', 'x')",
]
_LIKES = [
    "a%",
    "%a",
    "%a%",
    "a",
    "",
    "%",
    "_",
    "__",
    "a_",
    "_a%",
    "a%b",
    "%%",
    r"\%%",
    r"%\_",
    r"a\\b",
    "%.%",
    "ß_",
    "%🤦%",
    "a%b%c",
    "[a]%",
    "_%_",
    "%\n%",
]
_RLIKES = ["a", "^a", "b$", "a.b", "^$", "[ab]+", "(a|b)c", r"\\d", r"\\s", "a{2}", ".", "ß", "^a.*b$"]
_ANY = st.text("abA,ßé🤦 \n\t%_.\\1\x00", max_size=6) | st.sampled_from(
    ["", "a", "ab", "ß", "e\u0301", "İ", "ǆ", "ﬁ", "aa"]
)


@pytest.mark.long
@settings(max_examples=max(3, settings().max_examples // 8), phases=[Phase.generate])
@given(
    left=st.lists(st.none() | _ANY, min_size=12, max_size=12),
    right=st.lists(st.none() | _ANY, min_size=12, max_size=12),
)
def test_functions(left: list[str | None], right: list[str | None]) -> None:
    found = differences(_TEXTS, pa.table({"s": pa.array(left, pa.string()), "t": pa.array(right, pa.string())}))
    assert not found, "\n".join(found)


@settings(max_examples=max(3, settings().max_examples // 8), phases=[Phase.generate])
@given(values=st.lists(st.none() | _ANY, min_size=20, max_size=20))
def test_patterns(values: list[str | None]) -> None:
    texts = [f"s LIKE r'{p}'" for p in _LIKES] + [f"s NOT LIKE 'x{p}' ESCAPE 'x'" for p in ("%a", "_", "xa")]
    found = differences([*texts, *(f"s RLIKE '{p}'" for p in _RLIKES)], pa.table({"s": pa.array(values, pa.string())}))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text", ["s || 'x'", "s = 'b'", "upper(s)", "length(s)", "substring(s, 2, 1)", "s LIKE 'b%'", "coalesce(s, 'z')"]
)
def test_slices_of_columns(text: str) -> None:
    table = pa.table({"s": pa.array(["ßa", None, "bc", "", "bcd", None, "x", "y", "zz"])})
    for start in (1, 3, 8):
        assert not differences([text], table.slice(start))
