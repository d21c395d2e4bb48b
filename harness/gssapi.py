"""The Python package gssapi, which has no wheels for Linux: built once into the user's cache.

    env {**os.environ, **gssapi_environment()} python …          can import it

It is built with the Kerberos headers that are installed, otherwise with those of Debian's libkrb5-dev.
`requirements/gssapi.txt` pins it, and `requirements/cython.txt` the compiler of its sources.
"""

from __future__ import annotations

import shutil
import sys
from functools import cache
from typing import TYPE_CHECKING

from harness.cache import fetched_once
from harness.debian import Program, libraries, unpacked
from harness.pip import install, pinned_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_LIBRARY = "libgssapi_krb5.so.2"


@cache
def gssapi_environment() -> Mapping[str, str]:
    """Return the environment variables with which Python finds the package; build it if missing.

    Raises Missing.
    """
    root = None if shutil.which("krb5-config") else unpacked("libkrb5-dev", "2 MB")
    found = () if root is None else libraries(root)

    def fetch(partial: Path) -> Path:
        compiler = install("cython", partial / "cython")
        building = {**_build_options(root, found), "PYTHONPATH": str(compiler)}
        return install("gssapi", partial / "lib", {**Program("", found).environment(), **building})

    version = pinned_version("gssapi")
    what = f"the Python package gssapi {version} (5 MB, and a minute to build)"
    folder = fetched_once(f"gssapi-{version}-{sys.implementation.cache_tag}", what, fetch)
    return {"PYTHONPATH": str(folder), **({"LD_LIBRARY_PATH": ":".join(found)} if found else {})}


def _build_options(root: Path | None, folders: Sequence[str]) -> dict[str, str]:
    """Return what krb5-config would say if it were installed."""
    if root is None:
        return {}
    places = [f"-L{folder}" for folder in folders]
    return {
        "GSSAPI_COMPILER_ARGS": f"-DHAS_GSSAPI_EXT_H -I{root / 'usr' / 'include'}",
        # By its whole name: the short one is a link, which may lead to a library outside the folder.
        "GSSAPI_LINKER_ARGS": " ".join([*places, f"-l:{_LIBRARY}"]),
        "GSSAPI_MAIN_LIB": _LIBRARY,
    }
