"""The embedded Kafka cluster."""
