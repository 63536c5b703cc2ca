"""Circuits: operators on streams of changes, and how they are run."""
