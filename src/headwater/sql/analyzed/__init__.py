"""analyzed: plans from Spark's own analyzer, read without a JVM.

`headwater.spark.analyzer` asks Spark what a query means and gives its analyzed plan as JSON; here it becomes the same
plan that the reader of SQL makes (`headwater.sql.plan`). One file reads one family of Spark's classes: `relations`,
`projections`, `joins`, `groups`, `windows`, `sets`, `generators`, `limits` and `definitions` the plan nodes,
`constants`, `conversions`, `operators`, `functions`, `moments`, `nested`, `aggregates`, `user` and `subqueries` the
expressions. `tree` is the JSON's form, `reading` what one reading shares, `tidy` takes out projections that do nothing.

Invariant: a class that no file here reads is refused by its name.
"""

from headwater.sql.analyzed.plans import plan_of

__all__ = ["plan_of"]
