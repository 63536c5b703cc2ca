"""pipeline: what is stale, and who goes first? Projects of derived artefacts: declared in files, planned, refreshed
as one graph, and recorded in a ledger.

A project is a folder with a ``headwater.yaml``, queries in ``views/*.sql``, and decorated Python in ``functions/*.py``
and ``features/*.py`` (`files`). It is read and checked as a whole before anything is changed (`graph`). A refresh pins
the tables once, brings the nodes forward in the order in which they read each other, side by side where they do not
(`execution`), and writes one row of the ledger for each publish (`ledger`).

No kind of artefact is known by name here but for what a file may declare: what one would be, whether the one that is
there is it, and how it is made are asked of the registry of kinds.
"""
