"""SCRAM against the example of RFC 7677, and both of our sides against each other."""

from __future__ import annotations

import asyncio
from base64 import b64decode

import pytest

from restow.cluster.security.refusal import SaslRefused
from restow.cluster.security.scram import (
    InvalidCredential,
    ScramClient,
    ScramCredential,
    ScramMechanism,
    ScramServer,
)

SHA_256 = ScramMechanism.SHA_256
PENCIL = "pencil"
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
CHALLENGE = f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
FINAL = f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def server(mechanism: ScramMechanism = SHA_256, user: str = "user", password: str = PENCIL) -> ScramServer:
    async def credential_of(name: str) -> ScramCredential | None:
        return ScramCredential.of_password(mechanism, password, SALT) if name == user else None

    return ScramServer(mechanism, credential_of, SERVER_NONCE)


def test_server_talks_as_in_the_example_of_the_standard() -> None:
    async def scenario() -> None:
        it = server()
        first = await it.answer(FIRST)
        assert (first.token, first.name) == (CHALLENGE, None)
        last = await it.answer(FINAL)
        assert (last.token, last.name) == (SIGNATURE, "user")

    asyncio.run(scenario())


def test_client_talks_as_in_the_example_of_the_standard() -> None:
    client = ScramClient(SHA_256, "user", "pencil", CLIENT_NONCE)
    assert client.first() == FIRST
    assert client.final(CHALLENGE) == (FINAL, SIGNATURE)


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("user", ["alice", "a,b=c", "=2C", "ü"])
def test_both_sides_agree(mechanism: ScramMechanism, user: str) -> None:
    async def scenario() -> None:
        it = server(mechanism, user, "secret, =\\")
        client = ScramClient(mechanism, user, "secret, =\\", "abc")
        final, expected = client.final((await it.answer(client.first())).token)
        reply = await it.answer(final)
        assert (reply.token, reply.name) == (expected, user)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "final",
    [
        FINAL.replace(b"p=d", b"p=e"),
        FINAL.replace(b",p=", b",p=AAAA"),
        FINAL.replace(b"p=dHzb", b"p="),
        FINAL.replace(b"c=biws", b"c=eSws"),
        FINAL.replace(b"%hv", b"%hw"),
        FINAL.replace(b",p=", b",q="),
        b"",
        b"\xff",
        b"c=biws,r=,p=",
    ],
)
def test_server_refuses_a_changed_final_message(final: bytes) -> None:
    async def scenario() -> None:
        it = server()
        await it.answer(FIRST)
        with pytest.raises(SaslRefused):
            await it.answer(final)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=user",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,m=x,n=user,r=abc",
        b"n,,n=user,r=",
        b"n,a=root,n=user,r=abc",
        b"n,,n=another,r=abc",
        b"n,,n=user,r=abc,tokenauth=true",
        b"\xff,,n=user,r=abc",
    ],
)
def test_server_refuses_a_first_message(first: bytes) -> None:
    with pytest.raises(SaslRefused):
        asyncio.run(server().answer(first))


def test_wrong_password_and_unknown_user_get_the_same_answer() -> None:
    async def refusal(user: str, password: str) -> str:
        it = server()
        client = ScramClient(SHA_256, user, password, "abc")
        with pytest.raises(SaslRefused) as refused:
            await it.answer(client.final((await it.answer(client.first())).token)[0])
        return str(refused.value)

    assert asyncio.run(refusal("user", "wrong")) == asyncio.run(refusal("nobody", "pencil"))


def test_client_refuses_a_weak_or_foreign_challenge() -> None:
    for challenge in (CHALLENGE.replace(b"4096", b"1"), CHALLENGE.replace(b"r=r", b"r=x"), b"e=other-error"):
        with pytest.raises(SaslRefused):
            ScramClient(SHA_256, "user", "pencil", CLIENT_NONCE).final(challenge)


def test_credential_is_stored_as_by_kafka() -> None:
    """In the format of Kafka, with the keys of the example in the standard."""
    credential = ScramCredential.of_password(SHA_256, "pencil", SALT)
    assert credential.encode() == (
        "salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
        "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,iterations=4096"
    )
    assert ScramCredential.decode(credential.encode()) == credential


@pytest.mark.parametrize("text", ["", "salt=AA==", "salt=AA==,stored_key=?,server_key=AA==,iterations=1"])
def test_unreadable_credential_is_refused_without_a_quote(text: str) -> None:
    with pytest.raises(InvalidCredential, match=r"^a SCRAM credential in the store cannot be read$"):
        ScramCredential.decode(text)
