"""search: which rows mention it? Full-text search over Delta tables, by an index that can be behind and is never wrong."""
