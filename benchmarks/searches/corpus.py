"""Documents whose words are distributed as in a language, made from a seed alone.

A vocabulary of pronounceable words, all different, is drawn from by Zipf's law; some words that questions ask for are
planted at known rates. Rows are made in blocks of 5,000, each from its own seed, so the first documents are the same at
every size, and a million of them are never in memory at once. Words are ASCII and two letters long at least: the peers
differ in what they make of other letters and of single ones, and it is their speed that is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["BLOCK", "CATEGORIES", "Corpus"]

BLOCK = 5_000
CATEGORIES = ("billing", "cards", "disputes", "fraud", "loans", "refunds", "savings", "transfers")
_VOCABULARY = 200_000
_EXPONENT = 1.07
_LEAST_WORDS, _MOST_WORDS = 60, 140
_AUTHORS = 20_000
_START_US = 1_600_000_000_000_000
_ONSETS = ("b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "pl", "gr")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ou")
_CODAS = ("", "", "", "n", "r", "s", "l", "t", "m", "x")
# Each is put at one random place of a document, in this share of the documents.
_PLANTED = {
    "data": 0.17, "spark": 0.05, "search": 0.05, "needle": 1 / 4_000, "machine": 0.01, "learning": 0.01,
    "machine learning": 1 / 3_000, "metadata": 0.008, "metadataset": 0.002, "nondatabase": 0.004,
}  # fmt: skip
_SENTENCE = 0.08

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Corpus:
    """``docs`` documents of nine columns, the first one's id being 0."""

    docs: int
    seed: int = 19

    @cached_property
    def words(self) -> list[str]:
        """The vocabulary, most frequent first."""
        rng = np.random.default_rng(self.seed)
        found: dict[str, None] = {}
        while len(found) < _VOCABULARY:
            count = _VOCABULARY
            shares = rng.integers(1, 4, count)
            parts = [rng.integers(0, len(listed), (count, 3)) for listed in (_ONSETS, _VOWELS, _CODAS)]
            for syllables, onsets, vowels, codas in zip(shares, *(part.tolist() for part in parts), strict=True):
                pieces = (
                    _ONSETS[onsets[n]] + _VOWELS[vowels[n]] + (_CODAS[codas[n]] if n == syllables - 1 else "")
                    for n in range(syllables)
                )
                found["".join(pieces)] = None
        return list(found)[:_VOCABULARY]

    @cached_property
    def _shares(self) -> Floats:
        weights: Floats = np.arange(1, _VOCABULARY + 1, dtype=np.float64) ** -_EXPONENT
        shares: Floats = np.cumsum(weights) / weights.sum()
        return shares

    @cached_property
    def _written(self) -> list[str]:
        """Each word as it stands inside a sentence, at its end, and at its beginning."""
        words = self.words
        return [*words, *(f"{word}." for word in words), *(word.capitalize() for word in words)]

    @cached_property
    def lengths(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """How many words the body of each document has."""
        numbers = range(-(-self.docs // BLOCK))
        return np.concatenate([self._lengths(np.random.default_rng((self.seed, n, 0))) for n in numbers])[: self.docs]

    @staticmethod
    def _lengths(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
        return rng.integers(_LEAST_WORDS, _MOST_WORDS + 1, BLOCK)

    def blocks(self) -> Iterator[pa.Table]:
        """The documents, a block at a time."""
        for number in range(-(-self.docs // BLOCK)):
            yield self.block(number).slice(0, min(BLOCK, self.docs - number * BLOCK))

    def block(self, number: int) -> pa.Table:
        """The documents of one block; its number may lie beyond the size of the corpus, for documents that are added."""
        lengths = self._lengths(np.random.default_rng((self.seed, number, 0)))
        rng = np.random.default_rng((self.seed, number, 1))
        total = int(lengths.sum())
        drawn = np.searchsorted(self._shares, rng.random(total))
        place = rng.random(total)
        drawn += np.where(place < _SENTENCE, _VOCABULARY, np.where(place > 1 - _SENTENCE, 2 * _VOCABULARY, 0))
        text = list(map(self._written.__getitem__, drawn.tolist()))
        begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        for planted, share in _PLANTED.items():
            pieces = planted.split()
            for document in np.flatnonzero(rng.random(BLOCK) < share).tolist():
                at = int(begins[document] + rng.integers(0, lengths[document] - len(pieces) + 1))
                text[at : at + len(pieces)] = pieces
        ends = begins + lengths
        bodies = [" ".join(text[b:e]) for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]
        titles = [" ".join(text[b : b + 6]) for b in begins.tolist()]
        first = number * BLOCK
        return pa.table(
            {
                "id": pa.array(np.arange(first, first + BLOCK)),
                "title": pa.array(titles),
                "body": pa.array(bodies),
                "author": pa.array([f"author{n}" for n in rng.integers(0, _AUTHORS, BLOCK).tolist()]),
                "category": pa.array([CATEGORIES[n] for n in rng.integers(0, len(CATEGORIES), BLOCK).tolist()]),
                "views": pa.array(rng.integers(0, 100_000, BLOCK)),
                "rating": pa.array(rng.integers(0, 1_000, BLOCK) / 8),
                "closed": pa.array(rng.random(BLOCK) < 0.3),
                "created": pa.array(
                    _START_US + np.arange(first, first + BLOCK) * 30_000_000, pa.timestamp("us", "UTC")
                ),
            }
        )
