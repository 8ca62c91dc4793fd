"""Members of stored records that had another name: nodes of the version before read and write it (docs/upgrades.md, D64)."""

from __future__ import annotations

import json

import msgspec
import pytest

from corpid.rules.oauth.records import Client
from corpid.stores.sql.clients import CLIENTS

CLIENT = Client(client_id="rp", name="RP", redirect_uris=("https://rp.example/cb",), jwks='{"keys":[]}')
FORMER, NAME = "token_endpoint_audience_until", "endpoint_audience_until"


def stored(**members: object) -> str:
    """A record as the version before wrote it."""
    before = {name: value for name, value in msgspec.to_builtins(CLIENT).items() if name != NAME}
    return json.dumps({**before, FORMER: None, **members})


def test_what_the_version_before_wrote_is_read() -> None:
    """D64: today's member migrates."""
    found = CLIENTS.decode([stored(token_endpoint_audience_until="2027-03-31")])
    assert found == msgspec.structs.replace(CLIENT, endpoint_audience_until="2027-03-31")
    assert CLIENTS.decode([stored()]) == CLIENT


@pytest.mark.parametrize("day", ["2027-03-31", None])
def test_what_is_written_now_is_read_by_both_versions(day: str | None) -> None:
    """docs/upgrades.md: nodes of the version before go on serving meanwhile."""
    client = msgspec.structs.replace(CLIENT, endpoint_audience_until=day)
    text = CLIENTS.encode(client)["record"]
    assert json.loads(text)[FORMER] == day
    assert CLIENTS.decode([text]) == client
