"""The login AWS_MSK_IAM: brokers that know it exist only at AWS, but what it sends can be compared.

A client sends a request that AWS's access keys have signed. botocore signs the same request here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from harness.pip import package_folder
from tests.conftest import needs_kafka

pytestmark = pytest.mark.full

_BOTH = """
import json, sys
from datetime import datetime
from unittest.mock import patch
from urllib.parse import parse_qsl, urlsplit

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.session import Session
from kafka.net.sasl import get_sasl_mechanism

from restow.client.properties import settings
from restow.client.property_files import from_flags

host = sys.argv[1]
given = from_flags(["security.protocol=SASL_SSL", "sasl.mechanism=AWS_MSK_IAM"])
options = settings(f"{host}:9098", given).options
ours = json.loads(get_sasl_mechanism(options["sasl_mechanism"])(host=host, **options).auth_bytes())

session = Session()
request = AWSRequest("GET", f"https://{host}/", params={"Action": ours["action"]})
signer = SigV4QueryAuth(
    session.get_credentials(), "kafka-cluster", session.get_config_variable("region"), expires=900
)
now = datetime.strptime(ours["x-amz-date"], "%Y%m%dT%H%M%SZ")
with patch("botocore.auth.get_current_datetime", lambda *_, **__: now):
    signer.add_auth(request)
theirs = {name.lower(): value for name, value in parse_qsl(urlsplit(request.url).query)}
print(json.dumps([ours, theirs]))
"""


@pytest.mark.parametrize("token", ["", "a/token+of=a role"])
def test_amazons_library_signs_the_login_request_with_the_same_signature(token: str) -> None:
    with needs_kafka():
        botocore = package_folder("botocore", "botocore (15 MB)")
    host = "b-1.demo.kafka.eu-west-1.amazonaws.com"
    keys = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "s/ecr+et"}
    keys |= {"AWS_SESSION_TOKEN": token} if token else {}
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", _BOTH, host],
        capture_output=True,
        text=True,
        check=False,
        env={**others, **keys, "AWS_DEFAULT_REGION": "eu-west-1", "PYTHONPATH": str(botocore)},
    )
    assert done.returncode == 0, done.stderr
    ours, theirs = json.loads(done.stdout)
    about = {"version": "2020_10_22", "host": host, "user-agent": "kafka-python"}
    assert ours == {**about, **theirs}
    assert ("x-amz-security-token" in theirs) == bool(token)
