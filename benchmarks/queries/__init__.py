"""The parts of `benchmarks/query.py`: one file for each section, and what they share."""
