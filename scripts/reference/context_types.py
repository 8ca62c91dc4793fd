"""The values of authentication_context_type, for docs/relying-parties.md."""

from __future__ import annotations

from typing import Final

from corpid.rules.oauth.client_registration import CONTEXT_TYPES

_MEANINGS: Final = {
    "APP": "any relying party",
    "CPF": "retirement savings: changes to accounts, limits and transfers",
    "BANK": "banks: accounts, cards, loans, transfers, devices",
    "FI": "other financial institutions: accounts, links, limits, deposits",
    "TELCO": "telephone companies: SIM cards, roaming, contact details",
}
"""the first word of a value -> whose transactions it names"""


def table() -> str:
    """The values by whose transactions they name."""
    rows = []
    for prefix, meaning in _MEANINGS.items():
        values = ", ".join(f"`{value}`" for value in sorted(CONTEXT_TYPES) if value.partition("_")[0] == prefix)
        rows.append(f"| `{prefix}_` | {meaning} | {values} |\n")
    unnamed = {value.partition("_")[0] for value in CONTEXT_TYPES} - _MEANINGS.keys()
    if unnamed:
        raise ValueError(f"no meaning for {sorted(unnamed)}")
    return f"| Prefix | For | Values |\n|---|---|---|\n{''.join(rows)}"
