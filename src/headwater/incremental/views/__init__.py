"""views: how does a query's answer stay right? A view is a query whose rows are kept in a Delta table and follow its sources.

`View` is what users hold. Below it: `definition` and `record` are what the table's log says of the view, `sources` reads changes, `live` holds a
circuit with its state, `addresses` knows where each row lies, `publishing`, `reconciling` and `packing_up` make commits, and
`refreshing` puts them in order.
"""

from headwater.incremental.views.view import View

__all__ = ["View"]
