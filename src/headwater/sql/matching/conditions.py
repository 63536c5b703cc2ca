"""The conditions of a pattern, as the kernel takes them: tables for what is known of each row, code for the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.binding import unfolded
from headwater.sql.matching.code import Coded, Coder, NotCoded, conjuncts, is_here
from headwater.sql.matching.rows import SortedRows
from headwater.sql.matching.values import FINE, UNKNOWN, RowValue
from headwater.sql.nodes import Call, Literal, Node, call, rewrite, walk
from headwater.sql.operators import logic
from headwater.sql.plan import Match
from headwater.sql.row_patterns.calls import AGGREGATE, LABEL, NUMBER, VALUE, Place, place_of
from headwater.sql.types import STRING
from headwater.sql.vectorised import vector_of

__all__ = ["Conditions", "LoadedConditions"]

NO_CODE, PYTHON = (-1, -1), (-2, -2)


@dataclass(frozen=True)
class LoadedConditions:
    """The arrays that the kernel reads, for some rows."""

    holds: npt.NDArray[np.uint8]
    spans: npt.NDArray[np.int64]
    code: npt.NDArray[np.int64]
    integers: npt.NDArray[np.int64]
    doubles: npt.NDArray[np.float64]
    slots: npt.NDArray[np.int64]
    ints: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float64]
    int_marks: npt.NDArray[np.uint8]
    float_marks: npt.NDArray[np.uint8]
    member: npt.NDArray[np.uint8]
    aggregates: npt.NDArray[np.int64]


@dataclass
class Conditions:
    """The conditions of the variables of a match, compiled once.

    For each variable ``here`` is what depends on the row and its neighbours alone, ``spans`` the code of the rest, and
    ``whole`` the condition as written.
    """

    variables: tuple[str, ...]
    whole: dict[str, Node]
    coded: Coded
    here: dict[str, RowValue] = field(default_factory=dict)
    spans: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, match: Match, dtypes: dict[str, pa.DataType]) -> Conditions:
        variables = match.variables
        whole = {name: unfolded(condition) for name, condition in match.definitions}
        made = cls(variables, whole, Coded(dtypes, variables))
        if match.skip.variables:
            made.coded.set_number(match.skip.variables)
        for name in variables:
            made._add(name, dtypes)
        return made

    def _add(self, name: str, dtypes: dict[str, pa.DataType]) -> None:
        if name not in self.whole:
            self.spans.append(NO_CODE)
            return
        here: list[Node] = []
        there: list[Node] = []
        for part in conjuncts(self.whole[name]):
            known = _of_the_row(part, name)
            (there if known is None else here).append(part if known is None else known)
        if here:
            self.here[name] = RowValue.of(here[0] if len(here) == 1 else logic("and", here), dtypes)
        if not there:
            self.spans.append(NO_CODE)
            return
        try:
            self.spans.append(Coder(self.coded, name).condition(there[0] if len(there) == 1 else logic("and", there)))
        except NotCoded:
            self.spans.append(PYTHON)

    @property
    def are_independent(self) -> bool:
        """Does no condition depend on the rows taken before?"""
        return all(span == NO_CODE for span in self.spans)

    def load(self, rows: SortedRows) -> LoadedConditions:
        """The tables for some rows."""
        count = len(rows)
        holds = np.ones((len(self.variables), max(count, 1)), np.uint8)
        for number, name in enumerate(self.variables):
            if name in self.here:
                values, marks = self.here[name].run(rows)
                true = np.asarray(values, bool) & (marks == FINE)
                holds[number] = np.where(marks == UNKNOWN, 2, true)[:count] if count else 0
        coded = self.coded
        ints = np.zeros((len(coded.ints), count + 1), np.int64)
        int_marks = np.zeros(ints.shape, np.uint8)
        texts: dict[pa.DataType, list[tuple[int, pa.Array]]] = {}
        for number, (value, kind) in enumerate(coded.ints):
            found, int_marks[number] = value.run(rows)
            if kind == "rank":
                array = found if isinstance(found, pa.Array) else pa.array(found, value.program.dtype)
                texts.setdefault(value.program.dtype, []).append((number, array))
            else:
                ints[number] = np.asarray(found)
        floats = np.zeros((len(coded.doubles), count + 1), np.float64)
        float_marks = np.zeros(floats.shape, np.uint8)
        for number, column in enumerate(coded.doubles):
            floats[number], float_marks[number] = column.run(rows)
        integers, doubles = self._constants(texts, ints, int_marks)
        return LoadedConditions(
            holds,
            np.array(self.spans, np.int64).reshape(-1, 2),
            np.array(coded.code, np.int64).reshape(-1, 3),
            integers,
            doubles,
            np.array(coded.slots, np.int64).reshape(-1, 5),
            ints,
            floats,
            int_marks,
            float_marks,
            np.array([v in s for s in coded.sets for v in self.variables], np.uint8).reshape(
                len(coded.sets), len(self.variables)
            ),
            np.array(coded.aggregates, np.int64).reshape(-1, 4),
        )

    def _constants(
        self, texts: dict[pa.DataType, list[tuple[int, pa.Array]]], ints: Any, marks: Any
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The constants; those that are compared by rank get theirs beside the columns'."""
        integers = np.zeros(len(self.coded.constants), np.int64)
        doubles = np.zeros(len(self.coded.constants), np.float64)
        ranked: dict[pa.DataType, list[tuple[int, Any]]] = {}
        for number, (kind, value, dtype) in enumerate(self.coded.constants):
            if kind == "double":
                doubles[number] = value
            elif kind == "rank":
                ranked.setdefault(dtype, []).append((number, value))
            else:
                integers[number] = int(vector_of(pa.array([value], dtype)).values[0])
        for dtype, columns in texts.items():
            constants = ranked.get(dtype, [])
            ranks = _ranks(pa.concat_arrays([*(a for _, a in columns), pa.array([v for _, v in constants], dtype)]))
            for at, (number, array) in enumerate(columns):
                ints[number] = ranks[at * len(array) : (at + 1) * len(array)]
            behind = len(ranks) - len(constants)
            for at, (number, _) in enumerate(constants):
                integers[number] = ranks[behind + at]
        return integers, doubles


def _ranks(values: pa.Array) -> npt.NDArray[np.int64]:
    """Equal values have equal ranks, and greater ones greater; those of nulls mean nothing."""
    coded = values.dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    ranks = np.zeros(max(len(order), 1), np.int64)
    ranks[order] = np.arange(len(order))
    found: npt.NDArray[np.int64] = ranks[coded.indices.fill_null(0).to_numpy()]
    return found


def _of_the_row(node: Node, variable: str) -> Node | None:
    """A condition that looks at the row it is tried for and at its neighbours, without the variables; else None."""
    for part in walk(node):
        if isinstance(part, Call) and part.op in (AGGREGATE, NUMBER):
            return None
        if isinstance(part, Call) and part.op == VALUE:
            labels = any(isinstance(n, Call) and n.op == LABEL for n in walk(part.args[0]))
            if not is_here(place_of(part), variable) or (labels and place_of(part).shift):
                return None

    def change(part: Node) -> Node | None:
        if isinstance(part, Call) and part.op == VALUE:
            inner = rewrite(part.args[0], lambda n: Literal(variable, STRING) if n == _LABEL else None)
            return inner if isinstance(inner, Literal) else Place(shift=place_of(part).shift).value(inner)
        return None

    return rewrite(node, change)


_LABEL = call(LABEL, (), STRING)
