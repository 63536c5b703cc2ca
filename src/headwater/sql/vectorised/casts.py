"""CAST and TRY_CAST, by the pair of types: `number_casts`, `moment_casts` and `text_casts`;
other pairs are DuckDB's.
"""

from __future__ import annotations

from headwater.sql.nodes import Call
from headwater.sql.types import NULL, family
from headwater.sql.vectorised.frame import Kernel
from headwater.sql.vectorised.moment_casts import moment_cast
from headwater.sql.vectorised.moment_texts import moment_text
from headwater.sql.vectorised.number_casts import number_cast
from headwater.sql.vectorised.text_casts import text_cast
from headwater.sql.vectorised.vector import Constant

__all__ = ["OPERATORS"]


def _build(node: Call) -> Kernel | Constant | None:
    source, target, safe = node.args[0].dtype, node.dtype, node.op == "try_cast"
    if source == NULL:
        return Constant(target, None)
    if family(source) in ("timestamp", "timestamp_ntz") and family(target) == "string":
        return moment_text
    for find in (number_cast, moment_cast, text_cast):
        kernel = find(source, target, safe=safe)
        if kernel is not None:
            return kernel
    return None


OPERATORS = {"cast": _build, "try_cast": _build}
