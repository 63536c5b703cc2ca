"""running: how a plan's kernels are put to work, in this process or in Spark's tasks."""
