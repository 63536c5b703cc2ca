"""plan: what a query means, as a tree of typed nodes without an engine.

One file a node. Names are resolved, types are Spark's, every coercion is a cast; an engine needs one form for each
node.
"""

from headwater.sql.nodes import Attribute, Named, Plan
from headwater.sql.plan.aggregate import Aggregate
from headwater.sql.plan.common_table import Reference, With
from headwater.sql.plan.distinct import Distinct
from headwater.sql.plan.filter import Filter
from headwater.sql.plan.generate import Generate
from headwater.sql.plan.join import Join
from headwater.sql.plan.limit import Limit
from headwater.sql.plan.match import Match
from headwater.sql.plan.project import Project
from headwater.sql.plan.recursion import Recursion
from headwater.sql.plan.scan import Scan
from headwater.sql.plan.set_operation import SetOperation
from headwater.sql.plan.single import Single
from headwater.sql.plan.sort import Sort
from headwater.sql.plan.values import Values
from headwater.sql.plan.window import Window

__all__ = [
    "Aggregate",
    "Attribute",
    "Distinct",
    "Filter",
    "Generate",
    "Join",
    "Limit",
    "Match",
    "Named",
    "Plan",
    "Project",
    "Recursion",
    "Reference",
    "Scan",
    "SetOperation",
    "Single",
    "Sort",
    "Values",
    "Window",
    "With",
]
