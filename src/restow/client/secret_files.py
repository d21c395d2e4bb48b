"""Secrets in files of their own, so that neither a command line nor client.properties has them.

Two ways to give them:

    sasl.password.file=/run/secrets/kafka           also as RESTOW_CLIENT_SASL_PASSWORD_FILE
    sasl.password=${secrets:/etc/kafka/login.properties:password}

The second is Kafka's own: `config.providers=secrets` and `config.providers.secrets.class` name one of Kafka's
own providers: for a properties file, a folder with a file for each key, or the environment.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from restow.client.property_files import Property, read_properties
from restow.errors import InvalidInput
from restow.runtime.secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FROM_FILES = frozenset(
    {
        "sasl.jaas.config",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.password",
    }
)
"""Each of these may be given as NAME.file, the path of a file that holds the value."""
PROVIDERS = "config.providers"
_CLASSES = {
    "org.apache.kafka.common.config.provider.FileConfigProvider": "file",
    "org.apache.kafka.common.config.provider.DirectoryConfigProvider": "directory",
    "org.apache.kafka.common.config.provider.EnvVarConfigProvider": "environment",
}
_REFERENCE = re.compile(r"\$\{(?P<provider>[^}:]+):(?:(?P<path>[^}]*?):)?(?P<key>[^}:]*)\}")


def resolve(
    layers: tuple[Mapping[str, Property], ...],
    environment: Mapping[str, str],
    warn: Callable[[str], None] = lambda _: None,
) -> dict[str, Property]:
    """Return the strongest value of each name, with secrets read from their files."""
    merged = {name: found for layer in layers for name, found in _with_files(layer, warn).items()}
    providers = _providers(merged)
    if not providers:
        return merged
    look_up = _LookUp(providers, environment, warn)
    return {
        name: look_up.replaced(name, found)
        for name, found in merged.items()
        if not name.startswith(PROVIDERS)
    }


def _with_files(layer: Mapping[str, Property], warn: Callable[[str], None]) -> dict[str, Property]:
    found = dict(layer)
    for name in FROM_FILES:
        given = found.pop(f"{name}.file", None)
        if given is None:
            continue
        if name in found:
            raise InvalidInput(
                f"{given.where}: {name}.file and {name} exclude each other: leave one of them out"
            )
        where = f"{given.where}: {name}.file"
        found[name] = Property(_content("".join(given.value).strip(), where, warn), given.where)
    return found


def _providers(merged: Mapping[str, Property]) -> dict[str, str]:
    """Return the kinds of provider by their names."""
    given = merged.get(PROVIDERS)
    if given is None:
        return {}
    kinds = {}
    for name in filter(None, (each.strip() for each in "".join(given.value).split(","))):
        named = merged.get(f"{PROVIDERS}.{name}.class", given)
        kind = _CLASSES.get("".join(named.value).strip())
        if kind is None:
            known = ", ".join(_CLASSES)
            raise InvalidInput(f"{named.where}: {PROVIDERS}.NAME.class must be one of {known}")
        kinds[name] = kind
    return kinds


class _LookUp:
    """Replaces references by values; files are read once."""

    def __init__(
        self, providers: Mapping[str, str], environment: Mapping[str, str], warn: Callable[[str], None]
    ) -> None:
        self._providers = providers
        self._environment = environment
        self._warn = warn
        self._files: dict[str, Mapping[str, Property]] = {}

    def replaced(self, name: str, found: Property) -> Property:
        """Replace references. One to an unknown provider stays as it is, as in Kafka."""
        text = "".join(found.value)
        if not any(match["provider"] in self._providers for match in _REFERENCE.finditer(text)):
            return found
        where = f"{found.where}: {name}"
        return Property(Secret(_REFERENCE.sub(lambda match: self._value(match, where), text)), found.where)

    def _value(self, match: re.Match[str], where: str) -> str:
        kind, path, key = self._providers.get(match["provider"]), match["path"] or "", match["key"]
        if kind is None:
            return match[0]
        if kind == "directory":
            if not key or "/" in key:
                raise InvalidInput(
                    f"{where}: the name of a file in {path!r} is missing, or has a slash in it"
                )
            return _content(str(Path(path) / key), where, self._warn).reveal()
        values = self._environment if kind == "environment" else self._properties(path, where)
        if key not in values:
            what = "the environment" if kind == "environment" else repr(path)
            raise InvalidInput(f"{where}: {what} has no value of the name that is asked for")
        value = values[key]
        return value if isinstance(value, str) else "".join(value.value)

    def _properties(self, path: str, where: str) -> Mapping[str, Property]:
        if path not in self._files:
            warn_if_open_to_all(path, self._warn)
            try:
                self._files[path] = read_properties(path)
            except InvalidInput as error:
                raise InvalidInput(f"{where}: {error}") from None
        return self._files[path]


def _content(path: str, where: str, warn: Callable[[str], None]) -> Secret:
    """Return a file's contents without the line end that editors add."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{where}: the file {path!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{where}: the file {path!r} is not text in UTF-8") from None
    warn_if_open_to_all(path, warn)
    word = text.removesuffix("\n").removesuffix("\r")
    if not word:
        raise InvalidInput(f"{where}: the file {path!r} is empty")
    return Secret(word)


def warn_if_open_to_all(path: str, warn: Callable[[str], None]) -> None:
    """Warn of a file with secrets that every user of this machine may read."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return
    if stat.S_ISREG(mode) and mode & stat.S_IROTH:
        warn(f"{path!r} holds a secret, and every user of this machine can read it: chmod 600 {path}")
