"""reader: from the text of a query to its plan, by Spark's rules.

`context` holds what one query's reading shares, `scopes` says what a name means, `expressions` types expressions (with
aggregates, windows and subqueries), `relations` reads FROM, `select` one SELECT, `queries` what stands around it,
`column_names` what Spark calls a column that has no name.
"""
