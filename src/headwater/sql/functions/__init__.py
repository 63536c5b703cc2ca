"""functions: which of Spark's functions are known here, and how does each engine write them?

One file a family. `catalogue` gathers them; `docs/functions.md` is made from it.
"""
