"""OAUTHBEARER: which tokens are accepted, and what a client is told of others."""

from __future__ import annotations

import asyncio
import hmac
import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from restow.cluster.security.oauth import InvalidToken, OAuthServer, TokenRules, check_token
from restow.cluster.security.refusal import SaslRefused
from tests.clock import HandClock

NOW_S = 1_800_000_000
SECRET = b"a key that both sides know"
CLAIMS = {"sub": "alice", "exp": NOW_S + 600, "iat": NOW_S}


def part(document: Any) -> str:
    return urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def token(claims: Any = None, *, algorithm: str = "none", key: bytes | None = None) -> str:
    signed = f"{part({'alg': algorithm})}.{part(CLAIMS if claims is None else claims)}"
    if key is None:
        return f"{signed}."
    digest = hmac.digest(key, signed.encode(), algorithm.replace("HS", "sha"))
    return f"{signed}.{urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def checked(text: str, **rules: Any) -> tuple[str, int]:
    return check_token(text, TokenRules(**rules), NOW_S * 1000)


def test_unsigned_token_names_its_subject_and_its_end() -> None:
    assert checked(token()) == ("alice", (NOW_S + 600) * 1000)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_signed_token_is_checked_with_the_secret(algorithm: str) -> None:
    assert checked(token(algorithm=algorithm, key=SECRET), secret=SECRET)[0] == "alice"
    with pytest.raises(InvalidToken, match="signature is wrong"):
        checked(token(algorithm=algorithm, key=b"another"), secret=SECRET)


@pytest.mark.parametrize(
    ("text", "rules", "why"),
    [
        (token(), {"secret": SECRET}, "not signed"),
        (token(algorithm="none", key=None) + "AA", {}, "no secret"),
        (token(algorithm="HS256", key=SECRET), {}, "no secret"),
        (token(algorithm="HS256"), {"secret": SECRET}, "signature is wrong"),
        ("a.b", {}, "three parts"),
        ("a.b.", {}, "header cannot be read"),
        (f"{part([])}.{part({})}.", {}, "header cannot be read"),
        (f"{part({'alg': 'none'})}.{part('x')}.", {}, "claims cannot be read"),
        (token({**CLAIMS, "exp": NOW_S - 60}), {}, "expired"),
        (token({"sub": "alice"}), {}, "no time of its end"),
        (token({**CLAIMS, "exp": "soon"}), {}, "not a time"),
        (token({**CLAIMS, "exp": True}), {}, "not a time"),
        (token({**CLAIMS, "exp": float("nan")}), {}, "not a time"),
        (token({**CLAIMS, "iat": NOW_S + 60}), {}, "not valid yet"),
        (token({**CLAIMS, "nbf": NOW_S + 60}), {}, "not valid yet"),
        (token({**CLAIMS, "sub": 5}), {}, "no claim 'sub'"),
        (token({**CLAIMS, "sub": ""}), {}, "no claim 'sub'"),
        (token(), {"principal_claim": "name"}, "no claim 'name'"),
        (token({**CLAIMS, "aud": "other"}), {"audiences": ("kafka",)}, "audience"),
        (token(), {"audiences": ("kafka",)}, "audience"),
        (token(), {"issuer": "me"}, "issuer"),
    ],
)
def test_bad_token_is_refused(text: str, rules: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidToken, match=why):
        checked(text, **rules)


def test_audience_issuer_and_claim_are_compared() -> None:
    text = token({**CLAIMS, "aud": ["x", "kafka"], "iss": "me", "name": "bob"})
    assert checked(text, audiences=("kafka",), issuer="me", principal_claim="name")[0] == "bob"


def clock() -> HandClock:
    return HandClock(NOW_S)


def test_login_by_token() -> None:
    server = OAuthServer(TokenRules(), clock())
    reply = asyncio.run(server.answer(f"n,,\x01auth=Bearer {token()}\x01\x01".encode()))
    assert (reply.token, reply.name, reply.expires_ms) == (b"", "alice", (NOW_S + 600) * 1000)


def test_client_learns_of_a_bad_token_before_it_is_refused() -> None:
    async def scenario() -> None:
        server = OAuthServer(TokenRules(secret=SECRET), clock())
        reply = await server.answer(f"n,,\x01auth=Bearer {token()}\x01\x01".encode())
        assert (reply.token, reply.name) == (b'{"status":"invalid_token"}', None)
        with pytest.raises(SaslRefused, match="invalid_token") as refused:
            await server.answer(b"\x01")
        assert "not signed" in refused.value.reason

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "message",
    [b"", b"n,,", b"n,,\x01auth=Basic abc\x01\x01", b"n,a=bob,\x01auth=Bearer TOKEN\x01\x01", b"\xff" * 50],
)
def test_other_messages_are_refused(message: bytes) -> None:
    with pytest.raises(SaslRefused):
        asyncio.run(OAuthServer(TokenRules(), clock()).answer(message.replace(b"TOKEN", token().encode())))
