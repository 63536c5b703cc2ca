"""Dataflow: operators connected to each other, once for each shard, before anybody runs them."""
