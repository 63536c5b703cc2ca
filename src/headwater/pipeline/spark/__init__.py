"""pipeline/spark: views as datasets of pipelines that Spark itself runs."""

from headwater.base.packages import required

required("pyspark", "Spark", "spark")
