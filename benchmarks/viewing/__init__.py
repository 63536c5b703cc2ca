"""The sections of the benchmark of views."""
