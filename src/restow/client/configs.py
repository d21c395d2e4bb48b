"""Configs over the wire. A broker answers for its own, any broker for topics."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

from restow.client.errors import BrokerError, Unreachable
from restow.client.hedging import TOO_SLOW, Stragglers
from restow.client.link import Requests
from restow.client.values import Config, ConfigResource
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DescribeConfigsRequest, IncrementalAlterConfigsRequest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from restow.client.link import Link

_KINDS = {"topic": 2, "broker": 4}
_NAMES = {number: name for name, number in _KINDS.items()}
_SOURCES = {1: "topic", 2: "broker", 3: "default broker", 4: "static", 5: "default"}
_SET, _REMOVE = 0, 1
_RESOURCES_AT_ONCE = 1_000


class ConfigRequests(Requests):
    """Requests about configs."""

    async def describe_configs(
        self,
        of: Iterable[ConfigResource],
        keys: Collection[str] | None = None,
        patience_s: float | None = None,
    ) -> Mapping[ConfigResource, Mapping[str, Config] | BrokerError]:
        """Ask all brokers at the same time: one that does not answer delays none of the others."""
        asked = dict(enumerate(_by_broker(tuple(of))))
        questions = {at: partial(_describe, self._link, *whom, keys) for at, whom in asked.items()}
        stragglers = Stragglers()
        try:
            answers = await stragglers.answers(questions, patience_s)
        finally:
            stragglers.close()  # an answer that comes later would be one to another question
        return {
            resource: told
            for at, (_, some) in asked.items()
            for resource, told in answers.get(at, dict.fromkeys(some, TOO_SLOW)).items()
        }

    async def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> Mapping[ConfigResource, BrokerError | None]:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        outcome: dict[ConfigResource, BrokerError | None] = {}
        for broker, some in _by_broker(tuple(changes)):
            request = IncrementalAlterConfigsRequest(
                resources=[
                    resource(
                        resource_type=_KINDS[each.of],
                        resource_name=each.name,
                        configs=[
                            resource.AlterableConfig(
                                name=name, config_operation=_REMOVE if value is None else _SET, value=value
                            )
                            for name, value in changes[each].items()
                        ],
                    )
                    for each in some
                ],
                validate_only=False,
            )
            try:
                answer = await self._link.ask(request, broker)
            except Unreachable as error:
                outcome.update(dict.fromkeys(some, BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, str(error))))
                continue
            for result in answer.responses:
                of = ConfigResource(_NAMES[result.resource_type], result.resource_name)
                needs = _needs("ALTER_CONFIGS", of)
                outcome[of] = BrokerError.of(result.error_code, result.error_message, needs)
        return outcome


async def _describe(
    link: Link, broker: int | None, some: Sequence[ConfigResource], keys: Collection[str] | None
) -> Mapping[ConfigResource, Mapping[str, Config] | BrokerError]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=_KINDS[each.of],
                resource_name=each.name,
                configuration_keys=None if keys is None else sorted(keys),
            )
            for each in some
        ],
    )
    try:
        answer = await (link.ask_anyone(request) if broker is None else link.ask(request, broker))
    except Unreachable as error:
        return dict.fromkeys(some, BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, str(error)))
    return {
        (of := ConfigResource(_NAMES[result.resource_type], result.resource_name)): BrokerError.of(
            result.error_code, result.error_message, _needs("DESCRIBE_CONFIGS", of)
        )
        or {
            each.name: _config(each.name, each.value, each.config_source, each.is_sensitive, each.read_only)
            for each in result.configs
        }
        for result in answer.results
    }


@lru_cache(maxsize=4096)
def _config(name: str, value: str | None, source: int, sensitive: bool, read_only: bool) -> Config:
    """Return a config as it was told. Brokers tell the same of most, and whenever they are asked."""
    return Config(
        name=name,
        value=value,
        source=_SOURCES.get(source, "default"),
        sensitive=sensitive,
        read_only=read_only,
    )


def _needs(operation: str, of: ConfigResource) -> str:
    return f"{operation} on {f'topic {of.name}' if of.of == 'topic' else 'the cluster'}"


def _by_broker(resources: Sequence[ConfigResource]) -> Iterable[tuple[int | None, list[ConfigResource]]]:
    """Return the resources by broker to ask. For a broker that is down, the controller answers."""
    anyone = [each for each in resources if each.of == "topic" or not each.name]
    for start in range(0, len(anyone), _RESOURCES_AT_ONCE):
        yield None, anyone[start : start + _RESOURCES_AT_ONCE]
    for each in resources:
        if each.of == "broker" and each.name:
            yield int(each.name), [each]
