"""query: what does the lake answer? SQL text in, rows out, on the engine of choice."""
