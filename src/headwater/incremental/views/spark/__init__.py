"""Refreshing a view by Spark's tasks, on the same state as in process (`docs/adr/015-one-state-two-runtimes.md`).

`running` is the driver, which runs one job after the other and names what tasks wrote; `tasks` is what they do,
`whole` what the one task of a small change does, `written` what they write and report. `jobs` says what a job consists
of, `shares` what a task reads, `rows` how rows travel, `held_state` how tasks see state and leave new runs, `merges`
which runs become one. `choice` decides which runtime a refresh takes.
"""
