"""`restow plan sign`, and commands that demand a signature."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from restow.model import TopicPartition
from restow.plan.files import text
from restow.plan.pin import Target, plan_from_targets
from tests.unit.plan.clusters import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Invoke


def plan_text(*replicas: int) -> str:
    target = Target(partition=TopicPartition("t", 0), replicas=replicas)
    return text.dumps(plan_from_targets(snapshot({"t": [(1, 2)]}), [target], created_ms=7))


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(plan_text(1, 3))
    return path


def key_pair(folder: Path, name: str) -> tuple[str, str]:
    """Write a private key and its public key to files."""
    key = Ed25519PrivateKey.generate()
    secret, public = folder / f"{name}.pem", folder / f"{name}.pub"
    secret.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))
    public.write_bytes(
        key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    )
    return str(secret), str(public)


def test_show_accepts_a_plan_with_the_key_of_any_signer(
    plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    before = text.loads(plan_file.read_text())
    pairs = [key_pair(tmp_path, name) for name in ("one", "two")]
    for secret, _ in (*pairs, pairs[0]):
        assert invoke("plan", "sign", str(plan_file), "--key", secret).exit_code == 0
    assert text.loads(plan_file.read_text()) == before
    assert len(json.loads(plan_file.read_text())["signatures"]) == 2
    for _, public in pairs:
        told = invoke("show", str(plan_file), "--signed-by", public)
        assert told.exit_code == 0, told.output


def test_execute_refuses_a_plan_without_the_signature(
    plan_file: Path, tmp_path: Path, invoke: Invoke, refused: Callable[..., str]
) -> None:
    secret, public = key_pair(tmp_path, "one")
    _, stranger = key_pair(tmp_path, "two")
    execute = ("execute", str(plan_file), "-b", "127.0.0.1:1", "--throttle", "none", "--yes", "--signed-by")
    assert "has no signature by the key" in refused(*execute, public)
    invoke("plan", "sign", str(plan_file), "--key", secret)
    assert "has no signature by the key" in refused(*execute, stranger)
    signatures = json.loads(plan_file.read_text())["signatures"]
    plan_file.write_text(json.dumps({**json.loads(plan_text(1, 4)), "signatures": signatures}))
    assert "has no signature by the key" in refused(*execute, public)


@pytest.mark.parametrize("signatures", [None, {}, [1], [{}], [{"key": 1, "signature": "x"}]])
def test_show_refuses_damaged_signatures(
    plan_file: Path, tmp_path: Path, refused: Callable[..., str], signatures: object
) -> None:
    _, public = key_pair(tmp_path, "one")
    plan_file.write_text(json.dumps({**json.loads(plan_file.read_text()), "signatures": signatures}))
    assert "its signatures are damaged" in refused("show", str(plan_file), "--signed-by", public)


def test_sign_refuses_a_wrong_key_and_leaves_the_plan_unchanged(
    plan_file: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    _, public = key_pair(tmp_path, "one")
    other = tmp_path / "other.pem"
    other.write_bytes(
        X25519PrivateKey.generate().private_bytes(
            form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
        )
    )
    before = plan_file.read_text()
    for key, said in (
        (public, "is no private key"),
        (str(other), "is no Ed25519 key"),
        ("/nope", "cannot be read"),
    ):
        assert said in refused("plan", "sign", str(plan_file), "--key", key)
    assert plan_file.read_text() == before


def test_sign_names_the_extra_when_the_library_is_missing(
    plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, public = key_pair(tmp_path, "one")
    for name in [each for each in sys.modules if each.startswith("cryptography")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for command in (
        ("plan", "sign", str(plan_file), "--key", secret),
        ("show", str(plan_file), "--signed-by", public),
    ):
        told = invoke(*command)
        assert told.exit_code == 1
        assert "pip install 'restow[sign]'" in told.stderr
