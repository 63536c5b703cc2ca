"""Whatever the data and the labels: a chart is well-formed, all of it lies inside the frame, and it is the same every time."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import InputError
from headwater.observe.chart import Band, Chart, Curve
from headwater.observe.measure import cells
from headwater.testing import HOSTILE_TEXTS

SVG = "{http://www.w3.org/2000/svg}"
TEXTS = st.sampled_from(HOSTILE_TEXTS) | st.text(max_size=20)
VALUES = (
    st.none()
    | st.floats()
    | st.floats(-10, 10)
    | st.sampled_from([7.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308])
)
TIMES = {
    "timestamp": st.datetimes(),
    "date": st.dates(),
    "integer": st.integers(-(2**63), 2**63 - 1) | st.integers(0, 20),
}


@st.composite
def charts(draw: st.DrawFn) -> Chart:
    axis = draw(st.sampled_from(["timestamp", "date", "integer"]))
    parts: list[Curve | Band] = []
    for _ in range(draw(st.integers(0, 11))):
        times: list[Any] = draw(st.lists(TIMES[axis], max_size=8))
        values = st.lists(VALUES, min_size=len(times), max_size=len(times))
        kind = draw(st.sampled_from(["line", "points", "bars", "band"]))
        if kind == "band":
            parts.append(Band(draw(TEXTS), times, draw(values), draw(values)))
        else:
            parts.append(Curve(draw(TEXTS), times, draw(values), kind))  # type: ignore[arg-type]
    return Chart(draw(TEXTS), parts, note=draw(TEXTS))


def places(root: ET.Element) -> list[tuple[float, float]]:
    """Every corner of what is drawn of the data."""
    found: list[tuple[float, float]] = []
    for group in root.iter(f"{SVG}g"):
        for path in group.iter(f"{SVG}path"):
            x = 0.0
            for letter, *numbers in re.findall(r"([MLV])(-?[\d.]+)(?: (-?[\d.]+))?", path.get("d", "")):
                if letter == "V":
                    found.append((x, float(numbers[0])))
                else:
                    x = float(numbers[0])
                    found.append((x, float(numbers[1])))
        found += [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in group.iter(f"{SVG}circle")]
        for rect in group.iter(f"{SVG}rect"):
            x, y, wide, tall = (float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
            assert wide > 0
            assert tall > 0
            found += [(x, y), (x + wide, y + tall)]
    return found


@pytest.mark.long
@given(charts())
def test_any_chart(chart: Chart) -> None:
    text = chart.svg()
    assert text == chart.svg() == chart._repr_svg_()
    assert "nan" not in re.sub(r">[^<]*<|aria-label=\"[^\"]*\"", "", text).lower().replace("-variant-numeric", "")
    root = ET.fromstring(text)
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    baseline = next(p for p in root.iter(f"{SVG}path") if p.get("class") == "axis grid")
    left, bottom, right = map(float, re.findall(r"[\d.]+", baseline.get("d", "")))
    assert 0 < left < right < width
    for x, y in places(root):
        assert left - 0.11 <= x <= right + 0.11
        assert 20 <= y <= bottom + 0.11 < height
    drawn = [part for part in chart.drawn if part.there]
    shapes = [g for g in root.iter(f"{SVG}g") if len(g) > 1]
    assert len(shapes) == len(drawn)
    written = chart.text(width=60).split("\n")
    assert all(cells(line) <= 60 for line in written)
    # What joins letters is kept, here as in the graphs.
    assert all(re.sub("[\u200c\u200d]", "", line).isprintable() for line in written)
    assert len(written) == 2 + len(chart.parts) + bool(chart.note)


def test_a_line_breaks_at_gaps() -> None:
    chart = Chart("t", [Curve("a", [1, 2, 3, 4, 5, 6], [1.0, 2.0, None, 4.0, math.nan, 6.0])])
    (path,) = [p for p in ET.fromstring(chart.svg()).iter(f"{SVG}path") if p.get("class") == "curve"]
    assert path.get("d", "").count("M") == 1
    assert chart.svg().count("<circle") == 2


def test_places_are_in_proportion() -> None:
    chart = Chart("t", [Curve("a", [0, 5, 10], [0.0, 1.0, 2.0], "points")])
    (x0, y0), (x1, y1), (x2, y2) = places(ET.fromstring(chart.svg()))
    assert x1 == pytest.approx((x0 + x2) / 2, abs=0.1)
    assert y1 == pytest.approx((y0 + y2) / 2, abs=0.1)
    assert y0 > y2


def test_times_are_put_in_order() -> None:
    day = dt.date(2024, 1, 1)
    days = [day + dt.timedelta(days=k) for k in (2, 0, 1)]
    mixed = Chart("t", [Curve("a", days, [3.0, 1.0, 2.0])])
    assert mixed.svg() == Chart("t", [Curve("a", sorted(days), [1.0, 2.0, 3.0])]).svg()


def test_zones_are_one_time() -> None:
    utc = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    east = utc.astimezone(dt.timezone(dt.timedelta(hours=5)))
    assert Chart("t", [Curve("a", [utc], [1.0])]).svg() == Chart("t", [Curve("a", [east], [1.0])]).svg()


def test_many_curves_have_looks_of_their_own() -> None:
    chart = Chart("t", [Curve(f"c{k}", [1, 2], [float(k), 0.0]) for k in range(40)])
    looks = re.findall(r'class="curve" (stroke="[^"]+"(?: stroke-dasharray="[^"]+")?)', chart.svg())
    assert len(set(looks[:32])) == 32
    assert ">and 16 more<" in chart.svg()


def test_both_modes_are_in_the_style() -> None:
    light, dark = Chart("t", []).svg().split("@media (prefers-color-scheme:dark)")
    for name in ("paper", "ink", "dim", "grid", "axis"):
        assert f".hw-chart .{name}{{" in light
        assert f".hw-chart .{name}{{" in dark


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Curve("a", [1], []),
        lambda: Curve("a", [], [], "pie"),  # type: ignore[arg-type]
        lambda: Band("a", [1], [1.0], []),
        lambda: Chart("t", [Curve("a", [1, dt.date(2024, 1, 1)], [1.0, 2.0])]),
        lambda: Chart("t", [Curve("a", [True], [1.0])]),
        lambda: Chart("t", [], axis="month"),  # type: ignore[arg-type]
        lambda: Chart("t", []).svg(width=10),
    ],
)
def test_what_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError):
        wrong()


def test_it_says_what_it_is() -> None:
    chart = Chart("prices", [Curve("a", [1, 2], [1.0, 2.0])])
    assert repr(chart) == "Chart('prices', 1 part, 2 points)"
    assert str(chart) == chart.text()
