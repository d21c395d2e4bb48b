"""From samples of clusters to what they carry and will carry, on Spark: only here is pyspark imported."""
