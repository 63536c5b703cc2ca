"""intervals: lengths of time as values, from their types to the whole numbers that engines compute with."""
