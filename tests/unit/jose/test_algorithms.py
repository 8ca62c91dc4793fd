"""An algorithm that fails its start-up self-test is neither published nor accepted (D42)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from cryptography.hazmat.primitives.asymmetric import ec

from corpid.jose.algorithms import ALGORITHMS, working

NAMES = ("ES512", "ES256K", "ES256", "ES384")


class Unknown(ec.EllipticCurve):
    """A curve that OpenSSL was built without."""

    name = "secp256k9"
    key_size = 256
    group_order = 7


def test_every_algorithm_works_here_and_keeps_its_place() -> None:
    assert working(NAMES) == NAMES
    assert working(()) == ()


def test_an_algorithm_whose_curve_is_missing_is_left_out() -> None:
    lacking = {**ALGORITHMS, "ES256K": replace(ALGORITHMS["ES256K"], curve=cast("Any", Unknown()))}
    assert working(NAMES, lacking) == ("ES512", "ES256", "ES384")
