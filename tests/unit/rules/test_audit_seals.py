"""The form of a seal, and what is made of one that is not ours (D58, docs/decisions/0016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.jose import compact
from corpid.jose.encoding import base64url
from corpid.jose.key_ring import SigningKey, generate_private_jwk, open_signing_key
from corpid.rules.audit_seals import (
    ALGORITHM,
    TYP,
    Chain,
    Prunes,
    RangeCheck,
    RemovalEntry,
    Row,
    Seal,
    SealClaims,
    covering,
    entry_digest,
    payload_digest,
    retention,
)
from corpid.stores.sql.tables import audit

DAY = 86_400
ROW: Row = {"number": 7, "at": 1000, "actor": "user:u1", "action": "user.add", "object": "u1", "members": ""}


def key() -> SigningKey:
    return open_signing_key(generate_private_jwk(), active_from=0, retired_at=None, revoked_at=None)


@dataclass
class Signer:
    """Makes seals one after the other."""

    key: SigningKey
    before: Seal | None = None

    def seal(self, *rows: Row, last: int, typ: str = TYP, **members: Any) -> Seal:
        lists: dict[str, list[Any]] = {}
        for row in rows:
            lists.setdefault(retention(str(row["action"])), []).append(entry_digest(row))
        claims, digests = covering(lists, self.before, last=last, now=5)
        payload = msgspec.json.encode(msgspec.structs.replace(claims, **members))
        header = base64url(msgspec.json.encode({"alg": "ES256", "kid": self.key.kid, "typ": typ})).encode()
        self.before = Seal(
            number=claims.seal,
            at=5,
            last=last,
            digest=payload_digest(payload),
            seal=compact.sign(header, payload, self.key.private, ALGORITHM),
            digests=digests,
        )
        return self.before

    def chain(self) -> Chain:
        return Chain({self.key.kid: self.key.verifier})


def test_a_column_that_a_later_version_adds_changes_no_digest_of_earlier_entries() -> None:
    """docs/decisions/0016: it is empty in them."""
    assert entry_digest({**ROW, "later": ""}) == entry_digest(ROW)
    assert entry_digest({**ROW, "later": "x"}) != entry_digest(ROW)
    added = [column for column in audit.columns if column.server_default is not None]
    assert [column.name for column in added if column.server_default.arg != ""] == []  # type: ignore[union-attr]


@pytest.mark.parametrize("name", [name for name in ROW if name != "number"])
def test_every_column_is_in_the_digest(name: str) -> None:
    assert entry_digest({**ROW, name: 1 if name == "at" else "other"}).digest != entry_digest(ROW).digest


def test_the_number_stands_beside_the_digest() -> None:
    assert entry_digest({**ROW, "number": 8}) == entry_digest(ROW)._replace(number=8)


def test_a_value_that_is_no_text_fits_no_digest() -> None:
    """SQLite keeps whatever somebody writes into a column."""
    signer = Signer(key())
    seal = signer.seal(ROW, last=7)
    claims, _ = signer.chain().follow(seal)
    assert claims is not None
    for other in ({**ROW, "object": b"u1"}, {**ROW, "at": "soon"}, {**ROW, "object": None}):
        finding = RangeCheck(claims, seal).entry(other)  # type: ignore[arg-type]
        assert finding is not None
        assert (finding.number, finding.problem) == (7, "changed")


def test_what_was_pruned_is_said_by_the_strictest_prune_and_never_by_a_strange_number() -> None:
    days = {"audit_days": "30", "sign_in_days": "0"}
    told = [
        RemovalEntry(number=50, at=90 * DAY, detail={"audit_days": "1", "sign_in_days": "10"}),
        RemovalEntry(number=60, at=100 * DAY, detail=days),
        RemovalEntry(number=70, at=999 * DAY, detail={"audit_days": "-1"}),
        RemovalEntry(number=80, at=999 * DAY, detail={"audit_days": "²", "sign_in_days": "x"}),
    ]
    prunes = Prunes(told, now=1000 * DAY)
    of = [(name, number) for name in ("other", "sign_in", "prune") for number in (1, 49, 50, 59, 60, 99)]
    limits = [89, 89, 70, 70, 0, 0, 80, 80, 0, 0, 0, 0, *[0] * 6]
    assert [prunes.limit_before(*each) for each in of] == [each * DAY for each in limits]
    assert prunes.findings == []


def test_what_tells_of_a_removal_in_the_future_explains_none_and_is_found() -> None:
    """D58: of a clock that runs a few seconds ahead nothing is said."""
    told = [RemovalEntry(number=9, at=100 * DAY, detail={"audit_days": "1"})]
    assert Prunes(told, now=100 * DAY - 30).limit_before("other", 1) == 99 * DAY
    early = Prunes(told, now=100 * DAY - 31)
    assert (early.limit_before("other", 1), [(each.number, each.problem) for each in early.findings]) == (
        0,
        [(9, "future")],
    )


def test_a_chain_is_followed() -> None:
    signer = Signer(key())
    chain = signer.chain()
    for last in (7, 8, 20):
        claims, found = chain.follow(signer.seal({**ROW, "number": last}, last=last))
        assert isinstance(claims, SealClaims)
        assert (claims.last, found) == (last, [])


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"previous": "0" * 64}, id="another one before"),
        pytest.param({"first": 7}, id="a range that overlaps"),
        pytest.param({"seal": 3}, id="another number"),
        pytest.param({"typ": "JWT"}, id="another typ"),
    ],
)
def test_a_seal_that_does_not_fit_is_not_believed(other: dict[str, Any]) -> None:
    signer = Signer(key())
    chain = signer.chain()
    chain.follow(signer.seal(ROW, last=7))
    claims, [finding] = chain.follow(signer.seal(last=9, **other))
    assert claims is None
    assert (finding.object, finding.number, finding.problem) == ("seal", 2, "changed")


def test_a_seal_by_another_key_is_not_believed() -> None:
    ours, others = Signer(key()), Signer(key())
    claims, [finding] = ours.chain().follow(others.seal(ROW, last=7))
    assert claims is None
    assert "no audit key has signed it" in finding.text


SIGNER = Signer(key())
GENUINE = SIGNER.seal(ROW, last=7)


@given(st.one_of(st.text(), st.text(alphabet="ey.JAb-_0", max_size=60), st.integers(0, len(GENUINE.seal) - 1)))
def test_whatever_stands_in_place_of_a_seal_is_a_finding(text: str | int) -> None:
    """Anything, or the genuine one with another character."""
    if isinstance(text, int):
        other = "A" if GENUINE.seal[text] != "A" else "B"
        text = f"{GENUINE.seal[:text]}{other}{GENUINE.seal[text + 1 :]}"
    claims, found = SIGNER.chain().follow(msgspec.structs.replace(GENUINE, seal=text))
    assert claims is None
    assert [finding.problem for finding in found] == ["changed"]
