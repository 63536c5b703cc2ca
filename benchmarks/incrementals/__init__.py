"""The sections of ``benchmarks/incremental.py``."""
