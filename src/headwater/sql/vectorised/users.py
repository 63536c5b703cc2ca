"""The kernel of a user's function: it is handed the rows that count, and nothing else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.sql.functions.user import UserFailed, user_function
from headwater.sql.nodes import Call
from headwater.sql.vectorised.frame import Frame, Kernel, RowFailed
from headwater.sql.vectorised.vector import Operand, dense, inner, nulls, vector_of

__all__ = ["user_kernel"]

_MARK = "headwater!"


def user_kernel(node: Call) -> Kernel:
    """The kernel of a call of a user's function."""
    function = user_function(node.op)

    def kernel(frame: Frame, *args: Operand) -> Operand:
        columns = [dense(a, frame.rows).to_arrow() for a in args]
        active = frame.active
        rows = None if active is None else np.flatnonzero(active)
        if rows is not None:
            if len(rows) == 0:
                return nulls(node.dtype, frame.rows)
            columns = [c.take(pa.array(rows)) for c in columns]
        try:
            found = function.over(columns)
        except UserFailed as failed:
            row = failed.row if rows is None else int(rows[failed.row])
            raise RowFailed(row, str(failed).removeprefix(_MARK)) from None
        if not columns:
            found = pa.concat_arrays([found] * frame.rows) if frame.rows else found.slice(0, 0)
            rows = None
        if rows is None:
            return inner(vector_of(found))
        assert active is not None
        places = np.zeros(frame.rows, np.int64)
        places[rows] = np.arange(len(rows))
        return inner(vector_of(found.take(pa.array(places, mask=~active))))

    return kernel
