"""What views are called."""

from __future__ import annotations

from headwater.base.kinds import words_of

__all__ = ["WORDS"]

WORDS = words_of("view")
