"""Default ports of URL schemes."""

from __future__ import annotations

from typing import Final

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
"""by scheme: the port of a URL that names none"""
