"""Aggregates: one value of the rows of a key, kept up to date. One file a family."""
