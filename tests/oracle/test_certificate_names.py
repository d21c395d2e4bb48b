"""The names of certificates' subjects, as Java writes them, and the principals that Kafka makes of them."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

from harness.java import Missing
from restow.cluster.security.certificates import subject_of
from restow.cluster.security.principal_rules import NoRuleMatches, PrincipalRules
from restow.errors import InvalidInput
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


RULES = (
    "DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/L, RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
    r"RULE:^CN=(.*?)(,.*)?$/$1@$2@$3\/$12/, DEFAULT",
    "RULE:CN=(.*?)/$1-$0/, ,DEFAULT",
    "RULE:^cn=.*$/never/",
    r"RULE:^CN=a\\, b.*$/a comma\, and a \$1/",
    "RULE:.*/all/",
)
BAD_RULES = ("RULE:a/b", "RULE:a/b/X", "DEFAULTS", "ALL,DEFAULT")
NAMES = (
    "CN=duke,OU=ServiceUsers,O=Org,C=US",
    "CN=Duke,OU=Sme,O=mycp,L=Fulton,ST=MD,C=US",
    "CN=client",
    r"CN=a\, b,O=c",
    "OU=one",
    "",
)


@pytest.mark.parametrize("rules", RULES)
def test_rules_name_clients_as_in_kafka(gateway: JavaGateway, rules: str) -> None:
    from py4j.protocol import Py4JJavaError

    theirs = gateway.jvm.org.apache.kafka.common.security.ssl.SslPrincipalMapper.fromRules(rules)
    ours = PrincipalRules.parse(rules)
    for name in NAMES:
        try:
            expected = theirs.getName(name)
        except Py4JJavaError:
            with pytest.raises(NoRuleMatches):
                ours.name_of(name)
        else:
            assert ours.name_of(name) == expected, name


@pytest.mark.parametrize("rules", BAD_RULES)
def test_rules_are_refused_as_by_kafka(gateway: JavaGateway, rules: str) -> None:
    from py4j.protocol import Py4JJavaError

    with pytest.raises(Py4JJavaError, match="Invalid rule"):
        gateway.jvm.org.apache.kafka.common.security.ssl.SslPrincipalMapper.fromRules(rules)
    with pytest.raises(InvalidInput, match="this is none"):
        PrincipalRules.parse(rules)
