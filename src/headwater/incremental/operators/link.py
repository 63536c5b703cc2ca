"""Links: what a linear node does to a row, said in such a way that a chain of nodes can be done at once.

A node that looks at each row by itself, and gives at most one row for it, can say so with a `Link`: which rows it
keeps, which columns they get, and whether weights turn round. `headwater.incremental.operators.chain` makes one pass of
what follows each other. What multiplies rows (explode, flat map, windows), remembers something (a watermark) or is a
user's function of tables has none, and chains end before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from headwater.sql.vectorised import Program

__all__ = ["Link"]


@dataclass(frozen=True, slots=True)
class Link:
    """One member of a chain.

    Parameters
    ----------
    condition : Program, optional
        over the columns of the input: rows for which it is not true go
    limits : matrix, optional
        the same as limits of the input's words, where it is that (`headwater.incremental.limits`)
    columns : tuple, optional
        how each column of the output is made: a column of the input by its number, an expression over them, or None for
        nulls; left out, the columns stay
    negated : bool
        do weights change their sign?
    """

    condition: Program | None = None
    limits: npt.NDArray[np.int64] | None = None
    columns: tuple[int | Program | None, ...] | None = None
    negated: bool = False
