from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.observe.measure import cells, cut, cut_cells, one_line, text_width
from headwater.testing import HOSTILE_TEXTS

TEXTS = st.text() | st.sampled_from(HOSTILE_TEXTS)


@given(TEXTS)
def test_one_line_is_printable(text: str) -> None:
    line = one_line(text)
    assert line.replace("\u200c", "").replace("\u200d", "").isprintable()
    assert not set(line) & set("\n\r\t\x1b\x00\x7f\u2028\u202e")


@given(TEXTS, st.floats(20, 400), st.booleans())
def test_cut_fits(text: str, width: float, bold: bool) -> None:
    line = one_line(text)
    short = cut(line, 11, width, bold=bold)
    assert text_width(short, 11, bold=bold) <= width
    if short != line:
        assert short.endswith("…")
        assert line.startswith(short[:-1])
        # No more would have fitted, up to a space at the end.
        more = line[: len(short[:-1]) + 1] + "…"
        assert text_width(more, 11, bold=bold) > width or line[len(short) - 1] == " "


@given(TEXTS, st.integers(2, 60))
def test_cut_cells_fits(text: str, width: int) -> None:
    line = one_line(text)
    short = cut_cells(line, width)
    assert cells(short) <= width
    assert short == line or short.endswith("…")


@pytest.mark.parametrize("bold", [False, True])
def test_widths_are_those_of_a_wide_font(bold: bool) -> None:
    # Arial's, in thousandths of an em: ours must not be less.
    arial = {" ": 278, "a": 556, "i": 222, "m": 833, "w": 722, "W": 944, "M": 833, "0": 556, "_": 556, "@": 1015}
    narrower = [c for c, width in arial.items() if text_width(c, 1000, bold=bold) < width and c not in "@_"]
    assert narrower == []
