"""Read and write plan files, and read load models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from restow.errors import InvalidInput
from restow.text_files import read_text, write_text

if TYPE_CHECKING:
    from os import PathLike

    from restow.model import Plan
    from restow.model.load import LoadModel


def read_plan(
    path: str | PathLike[str], *, digest: str | None = None, signed_by: str | PathLike[str] | None = None
) -> Plan:
    """Read a plan from its file, and refuse one that was changed by hand.

    With `digest`, refuse a plan with any other digest; its first 12 digits are enough. With `signed_by`, the
    file of a public key (PEM, Ed25519), refuse a plan that the owner of the key has not signed.

        plan = restow.read_plan("plan.json", digest="sha256:3f9a6c0b71de")
    """
    from restow.plan.files.approval import check_digest
    from restow.plan.files.text import loads

    text = read_text(path)
    plan = loads(text, str(path))
    if digest is not None:
        check_digest(plan, digest, str(path))
    if signed_by is not None:
        from restow.plan.files.approval import check_signed_by

        check_signed_by(text, read_key(signed_by), str(path), str(signed_by))
    return plan


def write_plan(plan: Plan, path: str | PathLike[str]) -> None:
    """Write a plan into a file that `read_plan` and the commands read.

    restow.write_plan(plan, "plan.json")
    """
    from restow.plan.files.text import dumps

    write_text(path, dumps(plan))


def read_key(path: str | PathLike[str]) -> bytes:
    """Return a key from its file; raise an error if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {error.strerror}") from None


def read_load(path: str | PathLike[str]) -> LoadModel:
    """Read a load model: a JSON or Parquet file, as `restow pipeline run --load` writes it.

    load = restow.read_load("loads/main.parquet")
    """
    from restow.model.load_parquet import is_parquet, read
    from restow.model.load_text import loads

    return read(Path(path)) if is_parquet(Path(path)) else loads(read_text(path), str(path))
