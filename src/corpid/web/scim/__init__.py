"""SCIM 2.0: provisioning of one entity's members (D60)."""

from __future__ import annotations

from typing import Final

PATH: Final = "/scim/v2"
"""under base_url"""
