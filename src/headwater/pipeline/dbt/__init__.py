"""dbt projects, read as far as their meaning is known here: see `headwater.pipeline.dbt.migration`."""
