"""The parts of ``benchmarks/search.py``."""
