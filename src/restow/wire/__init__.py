"""Kafka's protocol as bytes: the codec, the hand-written hot paths, record batches and error codes.

`codec` turns requests and responses into bytes and back, `messages` has their classes, and only they import
the underlying library. `metadata`, `fetch` and `produce` are hand-written encoders of the most frequent
responses.
"""
