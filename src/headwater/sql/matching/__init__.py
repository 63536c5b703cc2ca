"""matching: which stretches of rows fit this pattern?

`Matcher` computes a `Match` over sorted rows in memory, whoever sorted them: the query engines, a circuit, a task of
Spark. `conditions` makes tables and code of the conditions, `machine` runs the search in `kernels.row_patterns`, and
`measures` computes the answer's values.
"""

from headwater.sql.matching.matcher import Matcher, sorted_for
from headwater.sql.matching.picture import PatternPlan, program_text
from headwater.sql.matching.rows import OWN, pattern_columns

__all__ = ["OWN", "Matcher", "PatternPlan", "pattern_columns", "program_text", "sorted_for"]
