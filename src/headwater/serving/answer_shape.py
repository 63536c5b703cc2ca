"""What answers have in common, found out once: by their schema, and by the bytes that they begin with.

The problem: a client gets answers of the same columns and of as many rows again and again, and reading where the
buffers of each lie takes longer than looking at them. The idea: what follows from the schema is kept by the schema
message (`AnswerShape`), and what follows from all bytes before the buffers by the length of the answer (`KnownAnswer`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.serving.answer_arrays import shared_type, strided
from headwater.serving.flatbuffer import END
from headwater.serving.frame import FrameLayout, FrameView
from headwater.serving.frame_view import Bytes

__all__ = ["AnswerShape", "KnownAnswer", "known_answer", "known_shape", "remember_answer", "shape_of"]

_ADDED = ("_found", "_status", "_event_time", "_idx")
_KEPT = 256


class AnswerShape:
    """What all answers of a schema have in common."""

    __slots__ = (
        "dtype",
        "floats",
        "index",
        "layout",
        "names",
        "numbers",
        "places",
        "schema",
        "tables",
        "values",
        "where",
    )

    def __init__(self, layout: FrameLayout) -> None:
        self.schema, self.layout = layout.schema, layout
        schema = layout.schema
        names: list[str] = schema.names
        self.where = {name: n for n, name in enumerate(names)}
        self.numbers = [n for n, name in enumerate(names) if name.split(".", 1)[0] not in _ADDED]
        self.names = [names[n] for n in self.numbers]
        self.tables = [name.removeprefix("_found.") for name in names if name.startswith("_found.")]
        self.values = [layout.columns[n] for n in self.numbers]
        self.dtype = shared_type([column.type for column in self.values])
        self.floats = self.dtype is not None and self.dtype.kind == "f"
        self.places = np.array([column.buffer + 1 for column in self.values], np.intp)
        self.index: Any = None


class KnownAnswer:
    """The bytes before the buffers of an answer that was read, and what they say of all answers that begin with them.

    Only for answers without nulls and without columns of variable size: there is nothing to be checked behind those
    bytes, so an answer that begins with the same ones, and is as long, is as sound.
    """

    __slots__ = ("columns", "first", "grid", "head", "lengths", "null_counts", "places", "rows", "shape", "steps")

    def __init__(self, shape: AnswerShape, view: FrameView) -> None:
        self.shape = shape
        self.head = bytes(view.body[: shape.layout.body_at])
        self.columns, self.rows, self.null_counts = view.columns, view.rows, view.null_counts
        self.places, self.lengths = view.places, view.lengths
        found = None if shape.dtype is None else strided(view, shape.places, shape.dtype)
        self.grid = None if found is None or not found.size else found.shape
        self.steps = (0, 0) if found is None else found.strides
        self.first = int(view.places[shape.places[0]]) if self.grid else 0

    def view(self, body: Bytes) -> FrameView:
        return FrameView(self.columns, self.rows, memoryview(body), self.places, self.lengths, self.null_counts)


_shapes: dict[bytes, AnswerShape] = {}
_known: dict[int, KnownAnswer] = {}
"""The answer that was read last of each length."""


def known_shape(schema_message: bytes) -> AnswerShape | None:
    """The shape of answers with a schema, if there was one."""
    return _shapes.get(schema_message)


def shape_of(layout: FrameLayout) -> AnswerShape:
    """The shape of answers with a layout."""
    found = _shapes.get(layout.schema_message)
    if found is None:
        found = AnswerShape(layout)
        if len(_shapes) >= _KEPT:
            _shapes.clear()
        _shapes[layout.schema_message] = found
    return found


def known_answer(body: bytearray) -> KnownAnswer | None:
    """What is known of an answer that begins with the same bytes as one before, is as long, and has its end."""
    known = _known.get(len(body))
    return known if known is not None and body.startswith(known.head) and body.endswith(END) else None


def remember_answer(shape: AnswerShape, view: FrameView) -> None:
    """Keep what was found out about an answer, if the next one need not be looked at as closely."""
    if shape.layout.variable or any(view.null_counts):
        return
    if len(_known) >= _KEPT:
        _known.clear()
    _known[len(view.body)] = KnownAnswer(shape, view)
