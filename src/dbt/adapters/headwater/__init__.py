"""dbt on a lake: models are Delta tables and materialized views, computed in the process of dbt.

In ``profiles.yml``::

    shop:
      target: dev
      outputs:
        dev:
          type: headwater
          path: s3://bucket/shop        # the lake
          schema: marts                 # `default` is the lake's root: names without a schema
          threads: 4
          storage_options:              # as in `headwater.connect`
            AWS_REGION: eu-west-1

The problem: dbt recomputes a table from all rows, and an incremental model follows changes only as far as its author
has written that down. The idea: a model with ``materialized='materialized_view'`` is a view of Headwater, so ``dbt
run`` is a refresh that follows all changes, corrections and deletions too.

It is a package of dbt's (``dbt.adapters``), since that is where dbt looks for adapters by the type in a profile. It
uses `Lake.sql`, and nothing of it is imported by Headwater.
"""

from dbt.adapters.base import AdapterPlugin

from dbt.adapters.headwater.connections import HeadwaterConnectionManager, HeadwaterCredentials
from dbt.adapters.headwater.impl import HeadwaterAdapter
from dbt.include import headwater

__all__ = ["HeadwaterAdapter", "HeadwaterConnectionManager", "HeadwaterCredentials", "Plugin"]

Plugin = AdapterPlugin(adapter=HeadwaterAdapter, credentials=HeadwaterCredentials, include_path=headwater.PACKAGE_PATH)
