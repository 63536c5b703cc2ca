"""serving: what do I answer right now? Rows of derived tables by key, in well under a millisecond."""
