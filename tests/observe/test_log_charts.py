"""Charts on logarithmic axes: equal factors are equally far apart, and what has no logarithm is a gap or refused."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from tests.observe.test_chart import SVG, places

from headwater.base.errors import InputError
from headwater.observe.chart import Band, Chart, Curve


def test_equal_factors_are_equally_far_apart() -> None:
    chart = Chart("t", [Curve("a", [10, 1_000, 100_000], [0.01, 1.0, 100.0], "points")], scale="log")
    (x0, y0), (x1, y1), (x2, y2) = places(ET.fromstring(chart.svg()))
    assert x1 == pytest.approx((x0 + x2) / 2, abs=0.1)
    assert y1 == pytest.approx((y0 + y2) / 2, abs=0.1)
    assert x0 < x1 and y0 > y1
    texts = [t.text for t in ET.fromstring(chart.svg()).iter(f"{SVG}text")]
    assert {"0.01", "1", "100", "1,000", "100,000"} <= set(texts)


def test_what_has_no_logarithm_is_a_gap() -> None:
    chart = Chart(
        "t", [Curve("a", [1, 10, 100], [1.0, 0.0, 2.0]), Band("b", [1, 10], [-1.0, 1.0], [1.0, 2.0])], scale="log"
    )
    assert chart.svg().count("<circle") == 2, "each stands alone"
    assert "0 … 2, last 2" in chart.text(), "figures are those that were given"


def test_the_text_is_on_the_same_scale() -> None:
    chart = Chart("t", [Curve("a", [1, 10, 100], [1.0, 10.0, 100.0])], scale="log")
    line = chart.text(width=60).split("\n")[1]
    assert "▁" in line and "█" in line
    assert line.index("▄" if "▄" in line else "▅") == pytest.approx((line.index("▁") + line.index("█")) / 2, abs=1)


def test_one_value_and_none_are_drawn() -> None:
    for values in ([5.0], [None], [0.0]):
        chart = Chart("t", [Curve("a", [7], values)], scale="log")
        assert ET.fromstring(chart.svg()) is not None
    assert ET.fromstring(Chart("t", [], axis="integer", scale="log").svg()) is not None


@pytest.mark.parametrize("decades", [0.001, 0.5, 3, 40, 600])
def test_there_are_a_few_ticks(decades: float) -> None:
    chart = Chart("t", [Curve("a", [1, 2], [1e-300, 10.0 ** (decades - 300)])], scale="log")
    texts = [t for t in ET.fromstring(chart.svg()).iter(f"{SVG}text") if "end" in t.get("class", "")]
    assert len(texts) <= 12


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="whole numbers above zero"):
        Chart("t", [Curve("a", [0, 1], [1.0, 2.0])], scale="log")
    with pytest.raises(InputError, match="bars begin at zero"):
        Chart("t", [Curve("a", [1], [1.0], "bars")], scale="log")
    with pytest.raises(InputError, match="of the kind date"):
        Chart("t", [Curve("a", [1], [1.0])], axis="date", scale="log")
    with pytest.raises(InputError, match="linear or log"):
        Chart("t", [], scale="sqrt")  # type: ignore[arg-type]
