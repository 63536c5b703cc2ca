"""Recipes: what takes several operators, or one with its watermarks, put together on streams. One file per subject."""
