"""Files of `examples/`.

They are in a source checkout, or else copied into the package (its pyproject.toml).
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def content(name: str) -> bytes:
    """A file, by its path under `examples/`."""
    checkout = Path(__file__).parents[3] / "examples" / name
    if checkout.exists():
        return checkout.read_bytes()
    return files("corpid_dev").joinpath("demo", name).read_bytes()
