"""Feedback: a cycle in a circuit, through a delay."""

from __future__ import annotations

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.dataflow.dataflow import Dataflow
from headwater.incremental.layout import Layout
from headwater.incremental.operators.delay import Held, Hold

__all__ = ["Feedback"]


class Feedback:
    """A stream that does not know yet where it comes from: see `Circuit.feedback`."""

    def __init__(self, circuit: Dataflow, schema: pa.Schema) -> None:
        self._circuit = circuit
        self._vertex = circuit.add(lambda: Held(Layout(schema)), [])
        self._vertex.signed = True  # nobody knows what will be connected
        self._connected = False
        self.stream: Stream = Stream(circuit, self._vertex)

    def connect(self, stream: Stream) -> None:
        """What comes here now comes out of the feedback in the next step."""
        if self._connected:
            raise InputError.bad_argument("feedback", "connected", "one that was not connected yet")
        self._connected = True
        aligned = self.stream._aligned(stream)
        helds = iter(self._vertex.nodes)
        self._circuit.add(lambda source: Hold(source, _held(next(helds))), [aligned.vertex])


def _held(node: object) -> Held:
    assert isinstance(node, Held)
    return node
