"""Where the rows of a lake are stored: folders of Parquet files, Iceberg tables or Delta tables."""

from restow.pipeline.stores.store import LakeStore, TableSnapshot, store_at

__all__ = ["LakeStore", "TableSnapshot", "store_at"]
