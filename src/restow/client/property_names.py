"""The client properties of Kafka that have an effect here, and those that are ignored.

A name in neither is an error.
"""

from __future__ import annotations

NUMBERS = {
    "connections.max.idle.ms": "connections_max_idle_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "receive.buffer.bytes": "receive_buffer_bytes",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "send.buffer.bytes": "send_buffer_bytes",
}
"""Numeric properties: Kafka's names and kafka-python's."""

TIMEOUTS = frozenset({"request.timeout.ms", "socket.connection.setup.timeout.ms"})

SECURITY = frozenset(
    {
        "security.protocol",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.protocol",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "sasl.jaas.config",
        "sasl.kerberos.service.name",
        "sasl.login.callback.handler.class",
        "sasl.client.callback.handler.class",
        "sasl.mechanism",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.password",
        "sasl.username",
    }
)

REFUSED = {
    "sasl.login.class": "classes of Java's cannot be loaded here",
    "security.providers": "classes of Java's cannot be loaded here",
    "ssl.cipher.suites": "OpenSSL has other names for them; leave it out and its choice is used",
    "ssl.engine.factory.class": "classes of Java's cannot be loaded here",
    "ssl.provider": "the provider is OpenSSL",
}
"""Properties that would make a connection safer but are not supported, with the reason."""

_COMMON = """
    bootstrap.servers bootstrap.controllers client.dns.lookup client.id client.rack default.api.timeout.ms
    auto.include.jmx.reporter enable.metrics.push metric.reporters metrics.num.samples metrics.recording.level
    metrics.sample.window.ms metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms retries
    retry.backoff.max.ms socket.connection.setup.timeout.max.ms ssl.keymanager.algorithm
    ssl.secure.random.implementation ssl.trustmanager.algorithm sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms
    sasl.login.retry.backoff.ms
"""

_CONSUMERS_AND_PRODUCERS = """
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size buffer.memory
    check.crcs compression.type delivery.timeout.ms enable.auto.commit enable.idempotence
    exclude.internal.topics
    fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id group.protocol
    group.remote.assignor heartbeat.interval.ms interceptor.classes isolation.level key.deserializer
    key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection max.partition.fetch.bytes
    max.poll.interval.ms max.poll.records max.request.size metadata.max.idle.ms
    partition.assignment.strategy partitioner.class session.timeout.ms transaction.timeout.ms
    transactional.id value.deserializer value.serializer
"""

PASSED_OVER = frozenset((_COMMON + _CONSUMERS_AND_PRODUCERS).split())
"""Properties without an effect here: one file often serves several of Kafka's clients."""

OF_VALIDATORS = frozenset(
    f"sasl.oauthbearer.{each}"
    for each in (
        "clock.skew.seconds",
        "expected.audience",
        "expected.issuer",
        "jwks.endpoint.refresh.ms",
        "jwks.endpoint.retry.backoff.max.ms",
        "jwks.endpoint.retry.backoff.ms",
        "jwks.endpoint.url",
        "jwt.validator.class",
        "scope.claim.name",
        "sub.claim.name",
    )
)
"""How tokens are validated, which brokers do."""

KNOWN = OF_VALIDATORS | frozenset(NUMBERS) | TIMEOUTS | SECURITY | frozenset(REFUSED) | PASSED_OVER
