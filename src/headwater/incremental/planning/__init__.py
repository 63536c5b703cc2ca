"""planning: which circuit keeps this query up to date?

A typed plan (`headwater.sql.plan`) becomes operators of `headwater.incremental.circuit`, one file for each kind of
node.
"""

from headwater.incremental.planning.building import build
from headwater.incremental.planning.checking import check
from headwater.incremental.planning.determinacy import determined

__all__ = ["build", "check", "determined"]
