"""The messages between brokers, field by field, in the notation of Kafka's own message definitions."""
