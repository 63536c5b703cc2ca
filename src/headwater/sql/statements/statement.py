"""A statement: what a text asks for, as data. How it is done is the business of `headwater.query.statements`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from headwater.sql.fragment import Parameters

__all__ = ["Statement"]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What all statements have: their own text, where it begins in a script, and their parameters."""

    verb: ClassVar[str] = ""
    form: ClassVar[str] = ""

    text: str = field(default="", repr=False)
    offset: int = field(default=0, repr=False, compare=False)
    parameters: Parameters = field(default_factory=dict, repr=False)
