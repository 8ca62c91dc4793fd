"""SCIM 2.0: provisioning of one entity's members (D60).

scim2-server implements the protocol without input or output: `service` limits what it reads and has the operations
on groups, and `storage` calls the flows. It is loaded at the first request.
"""

from __future__ import annotations

from typing import Final

PATH: Final = "/scim/v2"
"""under base_url"""
