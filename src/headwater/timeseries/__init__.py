"""timeseries: what was known when?

A `Stream` is a lazy series of rows with a time; it runs on Spark. `node` says what its operators are made of,
`operators/` has one file for each, and `running/` puts them into stages of Spark tasks that exchange Arrow blocks
(`headwater.spark.blocks`).
"""
