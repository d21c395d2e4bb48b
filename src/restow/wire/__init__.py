"""Kafka's protocol as bytes: the codec, the hand-written hot paths, record batches and error codes.

`codec` turns requests and responses into bytes and back, `messages` has their classes, and nobody else
imports the library underneath. `metadata`, `fetch` and `produce` write by hand what is asked for most.
"""
