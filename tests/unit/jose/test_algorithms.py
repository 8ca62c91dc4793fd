"""ECDSA by two libraries: each algorithm tested at the start, and P-256 by AWS-LC as OpenSSL verifies it.

RFC 7518 §3.4, FIPS 186-5 §6.4.2, docs/decisions/0035, D42
"""

from __future__ import annotations

import multiprocessing
from typing import Any, Final, cast

import pytest
from cryptography.exceptions import InternalError
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from msgspec.structs import replace

from corpid.jose.keys import ALGORITHMS, Accepts, coordinates, working_algorithms
from tests.unit.jose.signed import CURVES, P256_ORDER, openssl_accepts

NAMES: Final = ("ES512", "ES256K", "ES256", "ES384")
ES256: Final = ALGORITHMS["ES256"]
PRIVATE: Final = ec.generate_private_key(ec.SECP256R1())
MESSAGE: Final = b"a message"
R, S = decode_dss_signature(PRIVATE.sign(MESSAGE, ES256.ecdsa))
FIELD: Final = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
ROOT_OF_B: Final = 0x66485C780E2F83D72433BD5D84A06BB6541C2AF31DAE871728BF856A174F93F4
"""y of the point with x = 0"""
X_OF_5: Final = 0xD7325D7646CD60D80A92738CEB345F844CFFAF35841022CAB176F692DE8DE1D7
"""x of a point with y = 5"""


class Unknown(ec.EllipticCurve):
    """A curve that OpenSSL was built without."""

    name = "secp256k9"
    key_size = 256
    group_order = 7


def test_every_algorithm_works_here_and_keeps_its_place() -> None:
    """An algorithm that fails its start-up self-test is neither published nor accepted (D42)."""
    assert working_algorithms(NAMES) == NAMES
    assert working_algorithms(()) == ()


def test_an_algorithm_whose_curve_is_missing_is_left_out() -> None:
    lacking = {**ALGORITHMS, "ES256K": replace(ALGORITHMS["ES256K"], curve=cast("Any", Unknown()))}
    assert working_algorithms(NAMES, lacking) == ("ES512", "ES256", "ES384")


@pytest.mark.parametrize("failure", [RuntimeError("AWS_ERROR_CAL"), InternalError("OpenSSL", [])])
def test_an_algorithm_whose_library_fails_is_left_out(failure: Exception) -> None:
    """D42: with the errors of either library."""

    def fail(*_signed: object) -> bool:
        raise failure

    broken = {**ALGORITHMS, "ES256": replace(ES256, load_verifier=lambda *_given: fail)}
    assert working_algorithms(NAMES, broken) == ("ES512", "ES256K", "ES384")


@pytest.mark.parametrize("answer", [False, True])
def test_an_algorithm_whose_verification_does_not_decide_is_left_out(answer: bool) -> None:
    """D42: neither one that accepts no signature nor one that accepts every one."""

    def load(*_given: object) -> Accepts:
        return lambda *_signed: answer

    broken = {**ALGORITHMS, "ES256": replace(ES256, load_verifier=load)}
    assert working_algorithms(NAMES, broken) == ("ES512", "ES256K", "ES384")


DER: Final = encode_dss_signature(R, S)
SIGNATURES: Final[dict[str, tuple[bytes, bool]]] = {
    "as it was made": (DER, True),
    "with the other s, which ECDSA allows": (encode_dss_signature(R, P256_ORDER - S), True),
    "r of zero": (encode_dss_signature(0, S), False),
    "s of zero": (encode_dss_signature(R, 0), False),
    "both zero": (encode_dss_signature(0, 0), False),
    "r that is the order": (encode_dss_signature(P256_ORDER, S), False),
    "s that is the order": (encode_dss_signature(R, P256_ORDER), False),
    "r above the order": (encode_dss_signature(R + P256_ORDER, S), False),
    "s above the order": (encode_dss_signature(R, S + P256_ORDER), False),
    "all bits set": (encode_dss_signature(2**256 - 1, 2**256 - 1), False),
    "r and s exchanged": (encode_dss_signature(S, R), False),
    "a byte behind it": (DER + b"\0", False),
    "a byte less": (DER[:-1], False),
    "nothing": (b"", False),
    "no DER": (bytes(64), False),
}


@pytest.mark.parametrize(("signature", "valid"), SIGNATURES.values(), ids=SIGNATURES.keys())
def test_both_libraries_agree_on_a_signature(signature: bytes, valid: bool) -> None:
    """FIPS 186-5 §6.4.2"""
    assert ES256.verifier(coordinates(PRIVATE.public_key())).accepts(MESSAGE, signature) is valid
    assert openssl_accepts(PRIVATE.public_key(), MESSAGE, signature) is valid


def point(x: int, y: int) -> bytes:
    return x.to_bytes(32) + y.to_bytes(32)


POINTS: Final = {
    "the point (0, 0)": point(0, 0),
    "not on the curve": point(1, 1),
    "x above the field": point(FIELD, ROOT_OF_B),
    "y above the field": point(X_OF_5, FIELD + 5),
    "one coordinate": bytes(32),
    "a byte behind it": point(0, ROOT_OF_B) + b"\0",
    "a byte less": point(0, ROOT_OF_B)[:-1],
    "nothing": b"",
}


@pytest.mark.parametrize("given", POINTS.values(), ids=POINTS.keys())
def test_what_is_no_point_of_p_256_is_a_key_for_neither_library(given: bytes) -> None:
    """SEC 1 §3.2.2.1: else a signature says nothing."""
    with pytest.raises(ValueError, match="not on P-256"):
        ES256.verifier(given)
    with pytest.raises(ValueError, match="EC"):
        ES256.public_key(given)


def test_a_point_with_a_small_coordinate_is_a_key() -> None:
    for x, y in ((0, ROOT_OF_B), (0, FIELD - ROOT_OF_B), (X_OF_5, 5)):
        assert not ES256.verifier(point(x, y)).accepts(MESSAGE, DER)
        assert ES256.public_key(point(x, y)).public_numbers().x == x


def test_r_may_be_less_than_the_coordinate_that_it_comes_from() -> None:
    """FIPS 186-5 §6.4.2: here x of R is the order + 3, so r is 3; made by choosing R, and the key for it."""
    given = point(
        0xE5FE72FC6174B3CB030618A79A66DAA703B045F75F56145883939966D6811E34,
        0x8D11E8C16ABC38CD62AC0AB1F7041D12030A62B1BE2E59A6B0DA57F28E756465,
    )
    signature = encode_dss_signature(3, 1)
    assert ES256.verifier(given).accepts(MESSAGE, signature)
    assert openssl_accepts(ES256.public_key(given), MESSAGE, signature)


@pytest.mark.parametrize("name", CURVES)
def test_a_key_verifies_in_a_forked_process(name: str) -> None:
    """Workers are forked after the libraries and keys were loaded."""
    algorithm = ALGORITHMS[name]
    private = ec.generate_private_key(algorithm.curve)
    accepts = algorithm.verifier(coordinates(private.public_key())).accepts
    signature = private.sign(MESSAGE, algorithm.ecdsa)
    forking = multiprocessing.get_context("fork")
    receiving, sending = forking.Pipe(duplex=False)
    process = forking.Process(
        target=lambda: sending.send((accepts(MESSAGE, signature), accepts(MESSAGE + b".", signature)))
    )
    process.start()
    assert receiving.poll(30)
    assert receiving.recv() == (True, False)
    process.join(30)
    assert process.exitcode == 0
