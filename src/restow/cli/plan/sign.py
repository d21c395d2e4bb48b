"""`restow plan sign`: approve a plan with a key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from restow.cli.plan.files import PlanFile
from restow.cli.shared.connection import AsJson
from restow.cli.shared.frame import Answer
from restow.text_files import read_text, write_text

ABOUT = "Approve a plan with a key."
HELP = """Sign a plan with the approver's Ed25519 key. The command adds the signature to the file.

`restow execute --signed-by` then refuses a plan without this signature, and one that was changed since.
Needs the library cryptography: pip install 'restow[sign]'.

\b
Examples:
  Make a key, and give the public key to the people who execute plans:
    $ openssl genpkey -algorithm ed25519 -out approver.pem
    $ openssl pkey -in approver.pem -pubout -out approver.pub
  Approve a plan, and execute it:
    $ restow plan sign plan.json --key approver.pem
    $ restow execute plan.json --signed-by approver.pub --throttle 50MB/s -b localhost:9092
"""


def command(
    file: PlanFile,
    key: Annotated[str, typer.Option(metavar="FILE", help="The approver's private key, in PEM.")],
    as_json: AsJson = False,
) -> Answer:
    from restow.plan.files.approval import sign
    from restow.plan.files.reading import read_key
    from restow.plan.files.text import digest_of, loads

    signed = sign(read_text(file), read_key(key), file, key)
    write_text(file, signed)
    digest = digest_of(loads(signed, file))
    return Answer(
        document=lambda: {"plan": file, "digest": digest},
        draw=lambda console: console.print(f"{Path(file).name} is signed: {digest}", soft_wrap=True),
        as_json=as_json,
    )
