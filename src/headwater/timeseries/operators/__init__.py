"""operators: one file each, with the node of a plan, the kernel that tasks run,
and Spark's own form where it has one.
"""
