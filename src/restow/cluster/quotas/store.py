"""Quotas of clients in the store, where Kafka with ZooKeeper keeps them (`entities.py` has the paths).

`ConfigStore` follows and writes all configs, these among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.quotas.entities import QuotaEntity, quotas_in
from restow.cluster.store import Create, Delete, NoNode, Operation, Set
from restow.cluster.store.paths import parent_of
from restow.cluster.store.znodes import EntityConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.cluster.quotas.clients import ClientQuotas
    from restow.cluster.store import Store, StoreNode


class QuotaStore:
    """Keeps a broker's `ClientQuotas` equal to the store, and says how changes are written."""

    def __init__(self, store: Store, quotas: ClientQuotas) -> None:
        self._store = store
        self._quotas = quotas

    async def learn(self) -> None:
        """Read all quotas."""
        self._quotas.replace(await self.all())

    async def learn_of(self, entity_path: str) -> None:
        """Read the quotas of one entity, such as `users/alice`; of another kind of entity there are none."""
        entity = QuotaEntity.at(entity_path)
        if entity is not None:
            (found,) = (await self._read([entity])).values()
            self._quotas.put(entity, found)

    async def all(self) -> dict[QuotaEntity, Mapping[str, float]]:
        """Return all quotas that are set."""
        users = [QuotaEntity(user=each) for each in await self._children(EntityConfig.USERS)]
        entities = [
            *users,
            *(QuotaEntity(client_id=each) for each in await self._children(EntityConfig.CLIENTS)),
            *(QuotaEntity(ip=each) for each in await self._children(EntityConfig.IPS)),
        ]
        for each in users:
            below = await self._children(f"{each.path}/{EntityConfig.OF_CLIENTS}")
            entities += [each._replace(client_id=client_id) for client_id in below]
        found = await self._read(entities)
        return {entity: quotas for entity, quotas in found.items() if quotas}

    async def writes(self, path: str, node: StoreNode | None, values: Mapping[str, str]) -> list[Operation]:
        """Return what writes the configs of an entity, which without any is deleted, as in Kafka."""
        entity = QuotaEntity.at(path.removeprefix(f"{EntityConfig.PARENT}/"))
        if not values and entity is not None:
            return await self._removed(entity, node)
        if node is not None:
            return [Set(path, EntityConfig(values).encode(), node.stat.version)]
        writes: list[Operation] = [Create(path, EntityConfig(values).encode())]
        while await self._store.exists(path := parent_of(path)) is None:
            writes.insert(0, Create(path))
        return writes

    async def _removed(self, entity: QuotaEntity, node: StoreNode | None) -> list[Operation]:
        """Return what removes an entity's node, and the nodes above that are of no use without it."""
        path = entity.path
        if node is None:
            return []
        if await self._children(path):
            return [Set(path, EntityConfig().encode(), node.stat.version)]
        writes: list[Operation] = [Delete(path, node.stat.version)]
        if entity.user is None or entity.client_id is None:
            return writes
        clients = parent_of(path)
        if await self._children(clients) == (entity.client_id,):
            writes.append(Delete(clients))
            user = parent_of(clients)
            of_user = await self._store.get(user)
            values = EntityConfig.values_at(user, of_user)
            if not values and await self._children(user) == (EntityConfig.OF_CLIENTS,):
                writes.append(Delete(user, of_user.stat.version))
        return writes

    async def _read(self, entities: Iterable[QuotaEntity]) -> dict[QuotaEntity, dict[str, float]]:
        paths = {each: each.path for each in entities}
        nodes = await self._store.get_each(tuple(paths.values()))
        return {
            entity: quotas_in(entity, EntityConfig.values_at(path, node))
            for (entity, path), node in zip(paths.items(), nodes, strict=True)
        }

    async def _children(self, path: str) -> tuple[str, ...]:
        try:
            return await self._store.children(path)
        except NoNode:
            return ()
