"""derived: what does every artefact that follows tables need?

A view, a feature table, a search index, an online table and an export are the same kind of thing: a function of tables
whose result is kept and which states the frontier that it reflects. What they share lives here, once: the contract with
its laws, pinned sources and their identity, the record, the state folder, dependencies and the registry of kinds.
"""
