"""The names of certificates' subjects, as Java writes them for Kafka's principals."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

from harness.java import Missing
from restow.cluster.security.certificates import subject_of
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from pathlib import Path

    from py4j.java_gateway import JavaGateway

pytestmark = pytest.mark.jvm

SUBJECTS = (
    "/CN=client",
    "/C=DE/ST=Here/L=There/O=Example/OU=Team/CN=client",
    '/CN=a, b+c \\"d\\" <e>;f=g\\\\h',
    "/CN=# first",
    "/CN= both ends ",
    "/CN=a=b",
    "/OU=one+CN=two/O=three",
    "/DC=org/DC=example/UID=me/CN=ü€😀",
    "/emailAddress=me@example.org/CN=with mail",
    "/serialNumber=5/title=Dr/CN=others/street=Long Road 1",
)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_subject_is_written_as_by_java(gateway: JavaGateway, tmp_path: Path, subject: str) -> None:
    with needs_kafka():
        program = shutil.which("openssl")
        if program is None:
            raise Missing("there is no openssl on the PATH to make certificates with: install it")
    made = tmp_path / "made.pem"
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", tmp_path / "key.pem")
    what = ("-days", "1", "-utf8", "-multivalue-rdn", "-subj", subject, "-out", made)
    subprocess.run([program, "req", "-x509", *key, *what], check=True, capture_output=True)
    certificate = ssl.PEM_cert_to_DER_cert(made.read_text())
    stream = gateway.jvm.java.io.ByteArrayInputStream(certificate)
    factory = gateway.jvm.java.security.cert.CertificateFactory.getInstance("X.509")
    theirs = factory.generateCertificate(stream).getSubjectX500Principal().getName()
    assert subject_of(certificate) == theirs
