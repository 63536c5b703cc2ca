"""rendering: rows as people read them, on a terminal, in a notebook, and as text of single values."""
