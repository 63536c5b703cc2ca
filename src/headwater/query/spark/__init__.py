"""spark: queries that Spark answers, over the lake's tables."""
