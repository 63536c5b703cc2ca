"""The cache of outlines: what reading the queries of a project found, kept beside it between runs.

The file ``.headwater/outlines.json`` in the project's folder; version 1::

    {"version": 1, "headwater": "<version of Headwater>",
     "outlines": {"<node>": {"key": "<hash of kind, options and functions>",
                             "columns": {"<what it reads>": "<hash of its columns>", …},
                             "outline": {…}}, …}}          an `Outline`

An entry counts only if the options of the node, the functions at hand and the columns of all that it reads are what
they were. The file may be deleted at any time; one that cannot be read or written is as good as none.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from headwater.derived.outline import Outline, Shape, ShapeOf
from headwater.pipeline.node import Node
from headwater.sql.functions.user import UserFunction

__all__ = ["OutlineCache"]

_VERSION = 1


class OutlineCache:
    """Outlines of a project's nodes; without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        from headwater import __version__

        self._headwater = __version__
        self._file = None if folder is None else folder / "outlines.json"
        self._entries: dict[str, Any] = {}
        self._changed = False
        self._digests: dict[int, tuple[Shape, str]] = {}
        self.hits = 0
        if self._file is not None:
            with suppress(OSError, ValueError, KeyError, TypeError):
                found = json.loads(self._file.read_bytes())
                if (found["version"], found["headwater"]) == (_VERSION, self._headwater):
                    self._entries = dict(found["outlines"])

    def outline(self, node: Node, shape_of: ShapeOf, functions: Mapping[str, UserFunction]) -> Outline | None:
        """The outline of a node, if nothing that it depends on has changed."""
        entry, key = self._entries.get(node.name), _key(node, functions)
        if entry is None or key is None or entry["key"] != key:
            return None
        for name, digest in entry["columns"].items():
            if self._digest(shape_of(name)) != digest:
                return None
        self.hits += 1
        return Outline.from_json(entry["outline"])

    def add(
        self, node: Node, outline: Outline, shapes: Mapping[str, Shape], functions: Mapping[str, UserFunction]
    ) -> None:
        """Keep an outline."""
        key = _key(node, functions)
        if key is None:
            return
        columns = {name: self._digest(shapes[name]) for name in outline.reads}
        self._entries[node.name] = {"key": key, "columns": columns, "outline": outline.to_json()}
        self._changed = True

    def keep(self, names: Iterable[str]) -> None:
        """Write the file, with these nodes only."""
        kept = set(names)
        if self._file is None or not (self._changed or kept != set(self._entries)):
            return
        self._entries = {name: entry for name, entry in self._entries.items() if name in kept}
        value = {"version": _VERSION, "headwater": self._headwater, "outlines": self._entries}
        staged = self._file.with_suffix(f".{uuid.uuid4().hex}.tmp")
        with suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)
            ignore = self._file.parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            staged.write_text(json.dumps(value))
            os.replace(staged, self._file)
            self._changed = False

    def _digest(self, shape: Shape) -> str:
        known = self._digests.get(id(shape))
        if known is None or known[0] is not shape:
            text = f"{shape.name}\n{shape.schema.to_json()}"
            known = self._digests[id(shape)] = (shape, hashlib.sha256(text.encode()).hexdigest()[:24])
        return known[1]


def _key(node: Node, functions: Mapping[str, UserFunction]) -> str | None:
    """A hash of what a declaration says; None where it is Python code, which has no text to hash here."""
    if any(callable(value) for value in node.options.values()):
        return None
    prints = sorted((name, one.fingerprint) for name, one in functions.items())
    text = json.dumps([node.kind, dict(node.options), prints], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
