"""Benchmarks: ratios against named peers, measured in the same run, after checking that the answers are equal."""
