"""lake/spark: how Spark reads, writes and follows the tables of a lake, through the DataFrame API alone."""

from headwater.base.packages import required

required("pyspark", "Spark", "spark")
