"""Take samples: ask each broker of a cluster, and turn the answers into rows of the lake's tables.

Nothing here needs Spark: `restow collect` asks brokers from its own process, the data sources of
`restow.pipeline.sources` from Spark's executors.
"""
