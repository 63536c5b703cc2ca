"""Every act of the demo holds, and its numbers are the planted ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.demo import payments
from headwater.demo.story import tell


def test_payments_are_the_same_every_time() -> None:
    one, two = payments.make(2_000, late=50, corrections=20), payments.make(2_000, late=50, corrections=20)
    assert one.transactions.equals(two.transactions)
    assert one.change.equals(two.change)
    assert one.truth == two.truth


@pytest.mark.spark
def test_every_act_holds(spark: object, tmp_path: Path) -> None:
    acts = list(tell(hw.connect(tmp_path, spark=spark), lambda: spark))  # type: ignore[arg-type, return-value]
    assert [a.title for a in acts if not a.holds] == []
    assert acts[1].facts["late payments"] == 1_000
    assert acts[1].facts["corrected payments"] == 300
    assert acts[5].facts["rows changed"] == 0
