"""row_patterns: what does PATTERN (A B+ C) say? The tree of a row pattern, its text, and the machine it becomes.

Nothing here knows rows or expressions: `sql.plan.match` joins a pattern to its conditions, and `sql.matching` runs it.
"""

from headwater.sql.row_patterns.grammar import parse_pattern
from headwater.sql.row_patterns.syntax import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Quantified,
    Variable,
    parts_of_pattern,
    spelled,
    variables_of,
)

__all__ = [
    "Alternation",
    "Anchor",
    "Concatenation",
    "Exclusion",
    "Pattern",
    "Permutation",
    "Quantified",
    "Variable",
    "parse_pattern",
    "parts_of_pattern",
    "spelled",
    "variables_of",
]
