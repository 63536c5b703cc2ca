"""views: how does a query's answer stay right? A view is a query whose rows are kept in a Delta table and follow its
sources.

`View` is what users hold. Below it: `definition` and `record` are what the table's log says of the view, `sources`
reads changes, `live` holds a circuit with its state, `addresses` knows where each row lies, `publishing`, `reconciling`
and `packing_up` make commits, and `attempting` and `refreshing` put them in order; `tidying` does the rest in the
background, which `finish` waits for.
"""

from headwater.incremental.views.tidying import finish
from headwater.incremental.views.view import View

__all__ = ["View", "finish"]
