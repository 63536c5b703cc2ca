"""What everybody is asked, and when two answers are the same.

A question has a form for search engines (words), and one for scans: regular expressions that a document's text meets
exactly when the words are in it, since the words of the corpus are ASCII letters. Counts, ids and aggregates are compared
exactly. Rankings cannot be: engines round the length of a document to a byte, or not. So the ten rows of each are
scored by BM25 as it is defined (k1 = 1.2, b = 0.75), and at every rank must have a score within a few per cent of the
best ten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchmarks.searches.corpus import Corpus

__all__ = ["ADDED", "QUESTIONS", "Groups", "Kind", "Question", "Ranking", "same"]

Kind = Literal["count", "ids", "top", "groups"]
Shape = Literal["term", "and", "or", "phrase", "prefix", "substring"]
Groups = Mapping[str, tuple[int, int]]
"""For each category the number of rows and the sum of their views."""

_K1, _B = 1.2, 0.75
_TOLERANCE = 0.05
TOP = 10
ADDED = "needle"
"""The word whose rows are compared after a refresh."""


@dataclass(frozen=True)
class Question:
    """One line of the table."""

    name: str
    kind: Kind
    shape: Shape
    words: tuple[str, ...]

    @property
    def expressions(self) -> list[str]:
        """Regular expressions, all of which (for `or`, one of which) match the text."""
        match self.shape:
            case "phrase":
                return [r"(?i)\b" + r"\W+".join(self.words) + r"\b"]
            case "prefix":
                return [rf"(?i)\b{self.words[0]}"]
            case "substring":
                return [f"(?i){self.words[0]}"]
            case _:
                return [rf"(?i)\b{word}\b" for word in self.words]


QUESTIONS: Sequence[Question] = (
    Question("count, rare term", "count", "term", ("needle",)),
    Question("count, frequent term", "count", "term", ("data",)),
    Question("count, AND", "count", "and", ("spark", "search")),
    Question("count, phrase", "count", "phrase", ("machine", "learning")),
    Question("count, prefix metada*", "count", "prefix", ("metada",)),
    Question("count, *needl*", "count", "substring", ("needl",)),
    Question("count, *etadat*", "count", "substring", ("etadat",)),
    Question("count, *data*", "count", "substring", ("data",)),
    Question("top 10, rare term", "top", "term", ("needle",)),
    Question("top 10, frequent term", "top", "term", ("data",)),
    Question("top 10, OR of three", "top", "or", ("spark", "search", "metadata")),
    Question("all ids, rare term", "ids", "term", ("needle",)),
    Question("all ids, AND", "ids", "and", ("spark", "search")),
    Question("all ids, frequent term", "ids", "term", ("data",)),
    Question("views by category", "groups", "term", ("data",)),
)


class Ranking:
    """BM25 as it is defined, over the documents that match a question."""

    def __init__(self, corpus: Corpus, question: Question, texts: Mapping[int, str]) -> None:
        mean = float(corpus.lengths.mean())
        ids = list(texts)
        scores = np.zeros(len(ids))
        for expression in question.expressions:
            finds = re.compile(expression).findall
            counts = np.array([len(finds(texts[i])) for i in ids], np.float64)
            found = int((counts > 0).sum())
            weight = np.log(1 + (corpus.docs - found + 0.5) / (found + 0.5))
            norm = _K1 * (1 - _B + _B * corpus.lengths[ids] / mean)
            scores += weight * counts * (_K1 + 1) / (counts + norm)
        self._scores = dict(zip(ids, scores.tolist(), strict=True))
        self._best = np.sort(scores)[::-1][:TOP]

    def problem(self, ids: Sequence[int]) -> str | None:
        """Why these are not the best rows, or None."""
        if len(set(ids)) != len(self._best):
            return f"{len(set(ids))} rows, not {len(self._best)}"
        unknown = [i for i in ids if i not in self._scores]
        if unknown:
            return f"row {unknown[0]} does not match"
        given = np.sort([self._scores[i] for i in ids])[::-1]
        off = float(np.max(np.abs(given - self._best) / self._best, initial=0.0))
        return None if off <= _TOLERANCE else f"scores that are {off:.0%} off the best"


def same(kind: Kind, expected: Any, answer: Any, ranking: Callable[[], Ranking]) -> str | None:
    """How an answer differs from the expected one, or None."""
    if kind == "top":
        return ranking().problem([int(i) for i in answer])
    if kind == "ids":
        ours, theirs = np.sort(np.asarray(expected)), np.sort(np.asarray(answer))
        return None if np.array_equal(ours, theirs) else f"{len(theirs)} ids, not {len(ours)}, or others"
    return None if expected == answer else f"{answer!r}, not {expected!r}"
