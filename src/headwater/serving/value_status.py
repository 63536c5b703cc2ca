"""What an answer says of a row (``_status``) and of a value: it is there, it is null, there is no row,
or it is too old.
"""

from __future__ import annotations

__all__ = ["NOT_FOUND", "NULL_VALUE", "OUTSIDE_MAX_AGE", "PRESENT"]

PRESENT, NULL_VALUE, NOT_FOUND, OUTSIDE_MAX_AGE = range(4)
"""The column ``_status`` has no `NULL_VALUE`: that a value is null is said by the value itself."""
