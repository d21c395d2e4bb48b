"""SCRAM credentials: in the store, at `/config/users/<name>` as Kafka has them, and those of the configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.security.scram import (
    SCRAM_MECHANISMS,
    InvalidCredential,
    ScramCredential,
    ScramMechanism,
)
from restow.cluster.store.znodes import EntityConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from restow.cluster.config.store import ConfigStore
    from restow.runtime.chance import Chance

_SALT_BYTES = 16


class ScramUsers:
    """Reads a credential from the store whenever somebody logs in, so that every broker knows it at once."""

    def __init__(self, configs: ConfigStore, chance: Chance) -> None:
        self._configs = configs
        self._chance = chance
        self._made: dict[tuple[ScramMechanism, str, str], ScramCredential] = {}

    async def credential(
        self, mechanism: ScramMechanism, user: str, passwords: Mapping[str, str]
    ) -> ScramCredential | None:
        """Return the stored credential, or one made of the user's password in these, or None."""
        stored = (await self.stored([user]))[user].get(mechanism)
        if stored is not None or user not in passwords:
            return stored
        key = (mechanism, user, passwords[user])
        if key not in self._made:
            salt = self._chance.randbytes(_SALT_BYTES)
            self._made[key] = ScramCredential.of_password(mechanism, passwords[user], salt)
        return self._made[key]

    async def names(self) -> tuple[str, ...]:
        """Return all users who have configs, which may be credentials."""
        return await self._configs.users()

    async def stored(self, users: Iterable[str]) -> dict[str, dict[ScramMechanism, ScramCredential]]:
        """Return what the store has for each of these users; unreadable credentials are left out."""
        found = await self._configs.read([EntityConfig.user_path(each) for each in users])
        return {user: _credentials(values) for user, values in zip(users, found, strict=True)}

    async def alter(self, user: str, change: Callable[[dict[ScramMechanism, ScramCredential]], None]) -> None:
        """Apply a change to what the store has for a user. It may raise, and then nothing changes."""

        def applied(values: Mapping[str, str]) -> Mapping[str, str]:
            credentials = _credentials(values)
            change(credentials)
            others = {name: text for name, text in values.items() if name not in SCRAM_MECHANISMS}
            return others | {each.sasl_name: found.encode() for each, found in credentials.items()}

        await self._configs.alter(EntityConfig.user_path(user), applied, only_check=False)


def _credentials(values: Mapping[str, str]) -> dict[ScramMechanism, ScramCredential]:
    found = {}
    for name, mechanism in SCRAM_MECHANISMS.items():
        if name in values:
            try:
                found[mechanism] = ScramCredential.decode(values[name])
            except InvalidCredential:
                continue
    return found
