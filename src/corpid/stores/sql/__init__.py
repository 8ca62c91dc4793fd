"""Both stores on a SQL database; `open` opens them.

A module of this package is loaded when it is first named.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if not TYPE_CHECKING:  # which knows the modules

    def __getattr__(name):  # noqa: ANN001, ANN202
        if name.startswith("__"):
            raise AttributeError(name)
        return import_module(f"{__name__}.{name}")
