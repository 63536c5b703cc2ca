"""Operators: recipes over the five kinds of nodes, one file each."""
