"""streaming: sections of the benchmark of time series on Spark."""
