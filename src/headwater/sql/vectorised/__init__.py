"""vectorised: what does this expression give for these columns, in microseconds?

`sql.expressions.evaluate` asks DuckDB, which is exact and costs a millisecond and a half a call. A circuit that is
stepped with a hundred rows has a tenth of that for everything. Here the typed tree of the same expressions is compiled
to a tree of closures over numpy arrays and Arrow's compute functions: see `program` for what is promised, `vector` for
how columns are held, `registry` for what has a kernel, and `fallback` for what has none.
"""

from headwater.sql.vectorised.program import Program, compile_expression
from headwater.sql.vectorised.vector import Vector, vector_of

__all__ = ["Program", "Vector", "compile_expression", "vector_of"]
