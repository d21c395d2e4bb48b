"""Request handlers: one file per API key, `k03_metadata.py` for key 3.

Each has one `handle`, registered with its versions, and a docstring with its behaviour, version differences
and unsupported features. Importing this package imports them all.
"""

from importlib import import_module
from pkgutil import iter_modules

from restow.cluster.handlers.registry import HANDLERS, Answer, Handler, HangUp, handles, served_versions

__all__ = ["HANDLERS", "Answer", "Handler", "HangUp", "handles", "served_versions"]

for _found in iter_modules(__path__, f"{__name__}."):
    if _found.name.rpartition(".")[2].startswith("k"):
        import_module(_found.name)
