"""Date folders: tables that are whatever the newest complete folder of a date holds.

The convention is Murr's, and that of many batch jobs::

    s3://bucket/prefix/
      2024-01-13/part_0000.parquet, _SUCCESS
      2024-01-14/part_0000.parquet, part_0001.parquet, _SUCCESS      <- this one is served

`discovery` finds the newest folder that is complete, `validation` compares its files with the declared columns, and
`publishing` loads it into an online table of the server's data folder, whose readers swap to it. A folder that is not
as it should be is refused and reported, and the one before it is served on.
"""

from headwater.serving.folder.discovery import Discovery, Partition, discover
from headwater.serving.folder.publishing import FolderPublisher, Publisher

__all__ = ["Discovery", "FolderPublisher", "Partition", "Publisher", "discover"]
