"""Every error a user can meet, in one tree.

    HeadwaterError
    ├── InputError            what was passed in is wrong             (also a ValueError)
    │   ├── NotFoundError     a table, column, version or file        (also a LookupError)
    │   ├── SchemaError       types or columns that do not fit
    │   ├── ExpressionError   a predicate or SQL text that does not parse or resolve
    │   ├── SearchQueryError  a search query that does not parse, or exceeds a limit
    │   ├── ConfigError       a configuration file that cannot be used as it is
    │   │   └── ProjectError  a project of derived artefacts that cannot be used as it is
    │   ├── PartitionError    a folder of a date that cannot be served as it is
    │   └── RequestError      a request to a server that cannot be understood
    ├── ConstraintError       data breaks a rule of the table: NOT NULL, CHECK, generated column
    ├── UnsupportedError      we know what is asked and refuse it, with the reason
    ├── ConflictError         another writer committed first, and retrying would not be safe
    ├── CorruptionError       what lies on storage is damaged: log, checkpoint, Parquet, deletion vector
    ├── StorageError          storage refuses or fails: permission, full disk, unreachable endpoint
    ├── UpstreamError         what a view reads could not be refreshed, so the view was not
    ├── CancelledError        a query was stopped before it had given all its rows
    ├── ServerError           a server cannot be reached, does not answer in time, or fails
    ├── AccessError           a token is missing or wrong, or does not allow what is asked
    ├── LimitError            a request is larger, slower or more than a server takes
    └── SetupError            this machine lacks something: Java, an extra, memory

Each error carries a stable ``code`` (tests and scripts may rely on it), a message that says what happened, ``where`` it
happened, and a ``hint``: what to do next, in the words of the surface (Python, SQL or the command line) that it is said
on. Errors are built by the classmethods below, so that one situation has one wording everywhere.

>>> str(NotFoundError.column("amout", ["amount", "id"], where="orders"))
'error[E1002]: no column `amout`\\n  where: orders\\n  hint: did you mean `amount`? columns: amount, id'
"""

from headwater.base.errors.action import Action, Hint
from headwater.base.errors.cancelled import CancelledError
from headwater.base.errors.config import ConfigError
from headwater.base.errors.conflict import ConflictError
from headwater.base.errors.constraint import ConstraintError
from headwater.base.errors.corruption import CorruptionError
from headwater.base.errors.expression import ExpressionError
from headwater.base.errors.input import InputError
from headwater.base.errors.not_found import NotFoundError
from headwater.base.errors.partition import PartitionError
from headwater.base.errors.phrase import SURFACES, Surface
from headwater.base.errors.project import ProjectError
from headwater.base.errors.request import AccessError, LimitError, RequestError
from headwater.base.errors.root import HeadwaterError
from headwater.base.errors.schema import SchemaError
from headwater.base.errors.search_query import SearchQueryError
from headwater.base.errors.server import ServerError
from headwater.base.errors.setup import SetupError
from headwater.base.errors.storage import StorageError
from headwater.base.errors.unsupported import UnsupportedError
from headwater.base.errors.upstream import UpstreamError
from headwater.base.errors.wording import did_you_mean, underline

__all__ = [
    "SURFACES",
    "AccessError",
    "Action",
    "CancelledError",
    "ConfigError",
    "ConflictError",
    "ConstraintError",
    "CorruptionError",
    "ExpressionError",
    "HeadwaterError",
    "Hint",
    "InputError",
    "LimitError",
    "NotFoundError",
    "PartitionError",
    "ProjectError",
    "RequestError",
    "SchemaError",
    "SearchQueryError",
    "ServerError",
    "SetupError",
    "StorageError",
    "Surface",
    "UnsupportedError",
    "UpstreamError",
    "did_you_mean",
    "underline",
]

# An error is known to users, to tracebacks and to pickles by this package, whichever file it is written in.
for _kind in list(globals().values()):
    if isinstance(_kind, type) and issubclass(_kind, HeadwaterError):
        _kind.__module__ = __name__
