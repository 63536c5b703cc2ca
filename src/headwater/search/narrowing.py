"""Narrowing: an index that makes a query read fewer rows, without being asked to.

A query with a condition that an index of the table covers (``WHERE contains(body, 'refund')``) reads the candidates, by
file and position, and computes its conditions on them as on all other rows. Files that the index does not cover are
scanned. Nothing is built or fetched for a query: an index whose splits this machine would have to fetch from object
storage first is not used, and neither is one that was never built, or whose columns the table has no more.

Reading single rows costs more for each row than scanning does, so few rows must be candidates (`MOST_SHARE`), and
asking an index takes as long as scanning a small table (`LEAST_BYTES`).
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa

from headwater.base.errors import HeadwaterError
from headwater.derived.environment import Environment
from headwater.derived.narrowing import Candidates, Conditions, Narrowed
from headwater.search.definition import Definition
from headwater.search.discovery import indexes_of
from headwater.search.filtering import Way, choose_way
from headwater.search.index import SearchIndex
from headwater.search.reader import Reader
from headwater.sql.nodes import Column, Node, call, walk

__all__ = ["LEAST_BYTES", "MOST_SHARE", "narrowed"]

MOST_SHARE = 0.05
LEAST_BYTES = 1 << 20


def narrowed(asked: Conditions, environment: Environment) -> Narrowed | None:
    """The rows that the index of a table with the fewest candidates names;
    None if the table has no index that helps.
    """
    if asked.scanned_bytes < LEAST_BYTES:
        return None
    named = {n.path[0].lower() for one in asked.conditions for n in walk(one) if isinstance(n, Column)}
    ways: list[tuple[str, Reader, Way]] = []
    for name, meant in indexes_of(environment.root, asked.table).items():
        if named.isdisjoint(c.lower() for c in meant.fields.columns):
            continue
        try:
            reader = _usable(name, meant, asked, environment)
            if reader is not None and reader.searcher.num_docs:
                ways.append((name, reader, choose_way(reader, _joined(asked.conditions), MOST_SHARE)))
        except (HeadwaterError, ImportError):  # a query does not depend on an index
            continue
    if not ways:
        return None
    name, reader, way = min(ways, key=lambda one: (one[2].query is None, one[2].rows))
    if way.query is None:
        return Narrowed(None, f"index {name} not used: {way.reason}")
    hits = reader.every(way.query)
    files, starts = np.unique(hits.files, return_index=True)
    rows = np.split(hits.positions, starts[1:]) if len(files) else []
    found = {reader.paths[file]: part for file, part in zip(files.tolist(), rows, strict=True)}
    return Narrowed(Candidates(found, reader.uncovered), f"index {name}: {way.reason}, verified")


def _usable(name: str, meant: Definition, asked: Conditions, environment: Environment) -> Reader | None:
    """The index over the snapshot, if it can be had without work; its files that are not covered are scanned."""
    meant.check(name, asked.base)
    index = SearchIndex(name, environment)
    if environment.root.local_path("") is None and not all(map(index.store.is_here, index.record.names)):
        return None
    return index.reader(asked.base, whole=False)


def _joined(conditions: tuple[Node, ...]) -> Node:
    return reduce(lambda left, right: call("and", (left, right), pa.bool_()), conditions)
