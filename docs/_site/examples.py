"""An extension of griffe: our docstrings have no heading above their examples, and the reference needs one.

In numpy's style a section ends where the next one begins: without a heading, examples would be read as parameters.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

HEADING = "Examples\n--------\n"


def with_heading(text: str) -> str:
    """The docstring with a heading before its first example."""
    first = re.search(r"^>>> ", text, re.MULTILINE)
    if first is None or HEADING in text:
        return text
    return text[: first.start()] + HEADING + text[first.start() :]


class Examples(griffe.Extension):
    """Give examples their heading."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_heading(obj.docstring.value)
