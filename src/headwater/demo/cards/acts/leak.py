"""Act four: what a training set shows that nobody could have known, and by how much it flatters a model."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.demo.act import Act
from headwater.demo.cards.stage import Stage
from headwater.demo.cards.world import DAYS, day_of

__all__ = ["auc", "leak"]

LABEL_DAYS = 5


def leak(stage: Stage) -> Act:
    """Join labels with the disputes of their cards: by event time alone, and as they were known."""
    lake = stage.lake
    labels = _labels(stage)
    by_time = lake.training_set(labels, "disputes", time="paid_at", by="customer_id")
    known = lake.training_set(labels, "disputes", time="paid_at", by="customer_id", known_at=stage.decided)
    flattered, honest = (_score(found.to_arrow()) for found in (by_time, known))
    differing = _differing(by_time.to_arrow(), known.to_arrow())
    return Act(
        "The leak: chargebacks are reported weeks after the payment, and a join by event time sees them at once",
        'lake.training_set(labels, "disputes", time="paid_at", by="customer_id", known_at=...)',
        {
            "labels": labels.num_rows,
            "of them disputed, sooner or later": int(pc.sum(labels["fraud"]).as_py()),
            "labels that would have leaked": differing,
            "AUC by event time": f"{flattered:.3f}",
            "AUC of what was known": f"{honest:.3f}",
        },
        check="the leak makes the feature look better than it can be when it is served",
        holds=differing > 0 and flattered > honest + 0.05,
    )


def _labels(stage: Stage) -> pa.Table:
    """The payments of the last days that were there at first, and whether they are disputed sooner or later."""
    rows = stage.world.transactions
    rows = rows.filter(pc.greater_equal(rows["paid_at"], pa.scalar(day_of(DAYS) - timedelta(days=LABEL_DAYS))))
    fraud = pc.is_in(rows["transaction_id"], pa.array(sorted(stage.world.disputed), pa.int64()))
    return rows.select(["transaction_id", "customer_id", "paid_at"]).append_column("fraud", fraud)


def _score(found: pa.Table) -> float:
    score = pc.fill_null(found["disputed"], 0).to_numpy()
    return auc(found["fraud"].to_numpy(), score)


def _differing(one: pa.Table, other: pa.Table) -> int:
    first, second = (pc.fill_null(t.sort_by("transaction_id")["disputed"], 0).to_numpy() for t in (one, other))
    return int((first != second).sum())


def auc(truth: npt.NDArray[np.bool_], score: npt.NDArray[np.int64]) -> float:
    """How likely a disputed payment has a higher score than another one; ties count half.

    >>> float(auc(np.array([False, True]), np.array([0, 1])))
    1.0
    >>> float(auc(np.array([False, True, False]), np.array([1, 1, 1])))
    0.5
    """
    values, at = np.unique(score, return_inverse=True)
    counts = np.bincount(at, minlength=len(values))
    ranks = np.cumsum(counts) - (counts - 1) / 2
    positive = int(truth.sum())
    negative = len(truth) - positive
    return float((ranks[at][truth].sum() - positive * (positive + 1) / 2) / (positive * negative))
