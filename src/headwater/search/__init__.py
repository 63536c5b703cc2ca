"""search: which rows mention it? Full-text search over the tables of a lake."""
