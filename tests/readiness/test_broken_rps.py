"""Each relying party with one defect is caught by the case of that name; the one without a defect passes all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid_dev.readiness.cases import CASES
from corpid_dev.readiness.visitor import Marker
from corpid_dev.relying_party.interfaces import CURRENT, FAPI2
from tests.readiness.broken_rp import SIGNED_IN, RelyingParty
from tests.readiness.broken_trust import DEFECTS
from tests.readiness.scene import RunningDemo, broken, demo, verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.full


MARKER = Marker(text=SIGNED_IN)
ONLY_FAPI2 = ("iss-altered", "iss-missing", "assertions-short")
"""CURRENT sends no `iss`, and refuses a long assertion by itself"""
AT_ONCE = ("state-altered", "id-token-nonce", "key-unknown", "userinfo-sub", "par-unavailable")
"""those that `make test` tries"""
ENCRYPTED = {
    "id_token_encryption_alg": "ECDH-ES+A256KW", "id_token_encryption_enc": "A256GCM", "userinfo_signing_alg": "ES256",
}  # fmt: skip


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDemo]:
    with demo(tmp_path_factory.mktemp("demo"), CURRENT) as running:
        yield running


@pytest.fixture(scope="module")
def rp(current: RunningDemo) -> Iterator[RelyingParty]:
    with broken(current) as made:
        yield made


@pytest.fixture(scope="module")
def fapi2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDemo]:
    with demo(tmp_path_factory.mktemp("demo"), FAPI2) as running:
        yield running


@pytest.fixture(scope="module")
def rp_of_fapi2(fapi2: RunningDemo) -> Iterator[RelyingParty]:
    with broken(fapi2, **ENCRYPTED) as made:
        yield made


def caught(running: RunningDemo, rp: RelyingParty, defect: str) -> str:
    rp.become(defect)
    report = running.checked(f"{rp.home}/login", [defect], marker=MARKER, cool_down=0.1)
    return {each.case.id: each.verdict.value for each in report.results}[defect]


@pytest.mark.parametrize(
    "defect",
    [
        pytest.param(each, marks=() if each in AT_ONCE else pytest.mark.full)
        for each in DEFECTS
        if each not in ONLY_FAPI2
    ],
)
def test_each_defect_is_caught_by_its_case(current: RunningDemo, rp: RelyingParty, defect: str) -> None:
    """RFC 9700, FAPI 2.0 Security Profile §5.3.3, Spec 4.7, 8."""
    assert caught(current, rp, defect) == ("warned" if CASES[defect].advice else "failed")


@pytest.mark.parametrize("defect", ONLY_FAPI2)
def test_defects_that_only_fapi2_lets_through_are_caught_there(
    fapi2: RunningDemo, rp_of_fapi2: RelyingParty, defect: str
) -> None:
    """RFC 9207 §2.4, RFC 7523 §3."""
    assert caught(fapi2, rp_of_fapi2, defect) == "failed"


def test_without_a_defect_every_case_passes(
    current: RunningDemo, rp: RelyingParty, fapi2: RunningDemo, rp_of_fapi2: RelyingParty
) -> None:
    rp.become("")
    assert verdicts(current.checked(f"{rp.home}/login", cool_down=0.1)).keys() == {"iss-altered", "iss-missing"}
    rp_of_fapi2.become("")
    assert not verdicts(fapi2.checked(f"{rp_of_fapi2.home}/login", cool_down=0.1))


def test_every_case_has_a_relying_party_that_fails_it() -> None:
    assert set(DEFECTS) == set(CASES)
