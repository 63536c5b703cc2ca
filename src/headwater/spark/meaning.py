"""What a session means by SQL: ours is ANSI and UTC, as the other engines compute;
a user's session may be set otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WANTED", "is_set", "other_meaning"]

WANTED = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}
_ALIKE = {"Etc/UTC": "UTC", "GMT": "UTC", "Z": "UTC"}


def is_set(found: str, wanted: str) -> bool:
    """Whether a setting means what is wanted.

    >>> is_set("Etc/UTC", "UTC"), is_set("Europe/Paris", "UTC")
    (True, False)
    """
    return _ALIKE.get(found, found).lower() == wanted.lower()


def other_meaning(session: SparkSession) -> str | None:
    """The setting by which texts mean something else in this session, with its value; None if there is none."""
    for name, wanted in WANTED.items():
        found = str(session.conf.get(name, ""))
        if not is_set(found, wanted):
            return f"{name}={found}"
    return None
