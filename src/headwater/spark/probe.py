"""What a worker has: its Python, the packages that tasks need, and which Headwater.

The functions here run on workers that may not have Headwater, so this module imports the standard library only, and is
pickled by value (see `shipping`). Nothing is imported to find it out: where a package would come from is enough.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys

__all__ = ["NEEDED", "digest_of", "found_here"]

NEEDED = ("duckdb", "numba", "numpy", "obstore", "pandas", "polars", "pyarrow", "pyroaring", "sqlglot")
"""What tasks import besides Headwater and pyspark: it has machine code in it, so it cannot be shipped."""


def digest_of(folder: str) -> str:
    """A hash of the Python sources in a folder, by their names and what is in them."""
    digest = hashlib.sha256()
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += [os.path.join(place, name) for name in files if name.endswith(".py")]
    for path in sorted(found):
        with open(path, "rb") as source:
            data = source.read()
        name = os.path.relpath(path, folder).replace(os.sep, "/")
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:16]


def found_here(_: int) -> str:
    """In a task: what this worker has, as JSON."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    origin = digest = None
    try:
        spec = importlib.util.find_spec("headwater")
    except ValueError:  # a module without a spec stands in its place
        spec = None
    if spec is not None and spec.origin is not None:
        origin = spec.origin
        folder = os.path.dirname(origin)
        digest = digest_of(folder) if os.path.isdir(folder) else None
    version = ".".join(str(part) for part in sys.version_info[:2])
    return json.dumps({"python": version, "missing": missing, "origin": origin, "digest": digest})
