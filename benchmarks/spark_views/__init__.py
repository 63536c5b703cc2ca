"""The parts of the benchmark of views on Spark."""
