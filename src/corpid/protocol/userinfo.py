"""The claims of a userinfo answer (Spec 2.5, D22, D23)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.protocol.limits import USERINFO_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.protocol.access_token import AccessToken
    from corpid.protocol.records import Client


def claims(
    token: AccessToken, client: Client, blocks: Mapping[str, dict[str, object]], *, issuer: str, now: int
) -> dict[str, object]:
    """aud, iss, sub, iat, exp and the blocks, as text where the client registered for that (Spec 2.5, D22)."""
    answer: dict[str, object] = {
        "iss": issuer,
        "aud": client.client_id,
        "sub": token.subject,
        "iat": now,
        "exp": now + USERINFO_SECONDS,
    }
    for name, block in blocks.items():
        answer[name] = msgspec.json.encode(block).decode() if client.stringified_blocks else block
    return answer
