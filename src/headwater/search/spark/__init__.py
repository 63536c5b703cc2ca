"""Search on Spark: the data source ``format("headwater")``, which reads and writes Delta tables with their indexes.

Only this package of the room imports pyspark.
"""
