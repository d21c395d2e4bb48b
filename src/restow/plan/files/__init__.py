"""Plans as files: Restow's own, Kafka's JSON, digests and signatures."""
