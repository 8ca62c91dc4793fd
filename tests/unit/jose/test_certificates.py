"""Certificates of the provider's own keys: its default, and an operator's chain (Spec 2.9, RFC 7517 §4.7-4.9)."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from corpid.jose import certificates
from corpid.jose.certificates import CertificateRefused
from tests.certificates import Authority

NOW = 1_800_000_000
KEY = ec.derive_private_key(7, ec.SECP256R1())
BASIC_CONSTRAINTS = x509.BasicConstraints.oid
OTHER = ec.derive_private_key(8, ec.SECP256R1())
PROGRAM = f"""
from cryptography.hazmat.primitives.asymmetric import ec
from corpid.jose import certificates
made = certificates.self_signed(ec.derive_private_key(7, ec.SECP256R1()), kid="the-kid", created_at={NOW})
print(certificates.pem([made]), end="")
"""


def default() -> x509.Certificate:
    return certificates.self_signed(KEY, kid="the-kid", created_at=NOW)


def chain(key: ec.EllipticCurvePrivateKey = KEY, *, begin: int = NOW - 60, seconds: int = 3600) -> str:
    """A leaf, the authority below the root that issued it, and the root."""
    root = Authority("Root")
    middle = root.authority("Middle")
    return certificates.pem([middle.certify(key.public_key(), begin=begin, seconds=seconds), *middle.chain])


def check(text: str, *, now: float = NOW) -> None:
    certificates.check_chain(certificates.parse_chain(text), KEY.public_key(), now=now)


def test_the_default_certificate_is_the_same_in_every_process() -> None:
    """Spec 2.9: a thumbprint that a relying party has seen is the key's, whichever process answered."""
    printed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert printed == certificates.pem([default()])


def test_the_default_certificate_names_the_key_and_holds_ten_years_from_its_making() -> None:
    made = default()
    made.verify_directly_issued_by(made)
    assert made.public_key() == KEY.public_key()
    assert made.subject.rfc4514_string() == "CN=CorpID the-kid"
    assert made.not_valid_before_utc == datetime.fromtimestamp(NOW, UTC)
    assert made.not_valid_after_utc - made.not_valid_before_utc == timedelta(days=3652)
    assert made.extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_two_keys_have_different_serial_numbers() -> None:
    other = certificates.self_signed(OTHER, kid="another-kid", created_at=NOW)
    assert other.serial_number != default().serial_number


def test_the_members_are_base64_with_padding_and_base64url_without() -> None:
    """RFC 7517 §4.7: x5c is base64, not base64url; §4.8, §4.9: over the DER of the first certificate."""
    chained = certificates.parse_chain(chain())
    members = certificates.members(chained)
    assert [base64.b64decode(text, validate=True) for text in members["x5c"]] == [  # type: ignore[attr-defined]
        each.public_bytes(Encoding.DER) for each in chained
    ]
    der = chained[0].public_bytes(Encoding.DER)
    for name, digest in (("x5t", hashlib.sha1(der)), ("x5t#S256", hashlib.sha256(der))):
        assert members[name] == base64.urlsafe_b64encode(digest.digest()).decode().rstrip("=")
    assert members["x5t#S256"] == certificates.fingerprint(chained[0])


@pytest.mark.parametrize("extra", ["", "a remark of the authority\n", "\r\n"])
def test_a_chain_of_the_key_is_accepted_leaf_first(extra: str) -> None:
    text = extra + chain()
    check(text)
    assert certificates.pem(certificates.parse_chain(text)) == text.removeprefix(extra)


def test_a_leaf_without_its_issuers_is_a_chain() -> None:
    """Whether anybody trusts the last issuer is not asked."""
    check(certificates.pem(certificates.parse_chain(chain())[:1]))


@pytest.mark.parametrize("now", [NOW - 60, NOW + 3540])
def test_a_leaf_holds_from_its_first_to_its_last_second(now: int) -> None:
    check(chain(), now=now)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (NOW - 61, "valid only from 2027-01-15 07:59:00 UTC on"),
        (NOW + 3541, "expired at 2027-01-15 08:59:00 UTC"),
    ],
)
def test_a_leaf_out_of_its_time_is_refused(now: int, why: str) -> None:
    with pytest.raises(CertificateRefused, match=why):
        check(chain(), now=now)


def test_another_keys_certificate_is_refused() -> None:
    with pytest.raises(CertificateRefused, match="first certificate is not of this key"):
        check(chain(OTHER))


def test_a_chain_in_another_order_is_refused() -> None:
    leaf, middle, root = certificates.parse_chain(chain())
    with pytest.raises(CertificateRefused, match="first certificate is not of this key"):
        check(certificates.pem([root, middle, leaf]))
    with pytest.raises(CertificateRefused, match="certificate 2 did not issue certificate 1"):
        check(certificates.pem([leaf, root, middle]))


def test_an_issuer_that_is_no_authority_is_refused() -> None:
    """RFC 5280 §4.2.1.9: only a certificate with CA:TRUE may issue others; without the extension it is none."""
    root = Authority("Root")
    for ca in (False, None):
        middle = Authority("Middle")
        named = root.sign(middle.name, middle.public, ca=ca)
        leaf = middle.certify(KEY.public_key(), begin=NOW, seconds=60)
        with pytest.raises(CertificateRefused, match=r"certificate 2 is not a certificate authority's \(CA:TRUE\)"):
            check(certificates.pem([leaf, named, *root.chain]))


@pytest.mark.parametrize("issuers", [0, 1])
def test_a_leaf_that_is_an_authority_is_refused(issuers: int) -> None:
    """With it, a key that signs tokens could issue certificates."""
    root = Authority("Root")
    leaf = root.certify(KEY.public_key(), begin=NOW, seconds=60, ca=True)
    with pytest.raises(CertificateRefused, match="first certificate is a certificate authority's"):
        check(certificates.pem([leaf, *root.chain[:issuers]]))


def test_a_leaf_that_does_not_say_whether_it_is_an_authority_is_none() -> None:
    root = Authority("Root")
    check(certificates.pem([root.certify(KEY.public_key(), begin=NOW, seconds=60, ca=None), *root.chain]))


@pytest.mark.parametrize(
    ("begin", "end", "why"),
    [(NOW + 1, NOW + 99, "certificate 2 is valid only from"), (NOW - 99, NOW - 1, "certificate 2 expired at")],
)
def test_an_issuer_out_of_its_time_is_refused(begin: int, end: int, why: str) -> None:
    root, middle = Authority("Root"), Authority("Middle")
    dates = (datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end, UTC))
    named = root.sign(middle.name, middle.public, *dates, ca=True)
    leaf = middle.certify(KEY.public_key(), begin=NOW - 60, seconds=3600)
    with pytest.raises(CertificateRefused, match=why):
        check(certificates.pem([leaf, named, *root.chain]))


def test_a_certificate_that_comes_twice_is_refused() -> None:
    """A root issued itself, so that every pair would fit."""
    leaf, middle, root = certificates.parse_chain(chain())
    with pytest.raises(CertificateRefused, match="comes twice"):
        check(certificates.pem([leaf, middle, root, root]))


def test_a_certificate_whose_extensions_cannot_be_read_is_refused() -> None:
    """The extension as it stands in the certificate, with an octet string where its sequence should be."""
    root = Authority("Root")
    broken = root.sign(
        root.name, root.public, ca=None, extra=x509.UnrecognizedExtension(BASIC_CONSTRAINTS, b"\x04\x00")
    )
    leaf = root.certify(KEY.public_key(), begin=NOW, seconds=60)
    with pytest.raises(CertificateRefused, match="certificate 2 has extensions that cannot be read"):
        check(certificates.pem([leaf, broken]))


def test_eight_certificates_and_64_kib_are_read_and_no_more() -> None:
    one = certificates.pem([default()])
    assert len(certificates.parse_chain(one * 8)) == 8
    with pytest.raises(CertificateRefused, match="more than 8 certificates"):
        certificates.parse_chain(one * 9)
    assert len(certificates.parse_chain(one + "x" * (65536 - len(one)))) == 1
    with pytest.raises(CertificateRefused, match="longer than 64 KiB"):
        certificates.parse_chain(one + "x" * (65537 - len(one)))


def test_an_issuer_of_the_same_name_with_another_key_is_refused() -> None:
    leaf, middle, _ = certificates.parse_chain(chain())
    false_root = Authority("Root").chain[0]
    with pytest.raises(CertificateRefused, match="certificate 3 did not issue certificate 2"):
        check(certificates.pem([leaf, middle, false_root]))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no certificate in PEM form"),
        ("MIIB", "no certificate in PEM form"),
        ("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "certificate 1 cannot be read"),
        ("-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----", "certificate 1 cannot be read"),
        (
            "-----BEGIN EC PRIVATE KEY-----\nMIIB\n-----END EC PRIVATE KEY-----",
            r"something else \(EC PRIVATE KEY\): take that out",
        ),
        ("-----BEGIN \x1b[2J-----", "something else: take that out"),
        ("-----BEGIN ", "it is cut off"),
        ("-----BEGIN CERTIFICATE-----" * 8, "it is cut off"),
    ],
)
def test_a_text_that_is_no_chain_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(CertificateRefused, match=why):
        certificates.parse_chain(text)


def test_a_chain_that_was_cut_off_is_refused() -> None:
    text = chain()
    with pytest.raises(CertificateRefused, match="it is cut off"):
        certificates.parse_chain(text[:-40])
    with pytest.raises(CertificateRefused, match="certificate 3 cannot be read"):
        certificates.parse_chain(text[:-90] + text[-26:])


def test_a_signing_request_is_of_the_key_under_the_name_and_deterministic() -> None:
    """RFC 2986."""
    text = certificates.signing_request(KEY, subject_name="op.example")
    made = x509.load_pem_x509_csr(text.encode())
    assert made.is_signature_valid
    assert made.public_key() == KEY.public_key()
    assert made.subject.rfc4514_string() == "CN=op.example"
    assert certificates.signing_request(KEY, subject_name="op.example") == text


@pytest.mark.parametrize("name", ["", "a" * 65])
def test_a_name_of_another_length_is_refused(name: str) -> None:
    with pytest.raises(CertificateRefused, match="1 to 64 characters"):
        certificates.signing_request(KEY, subject_name=name)


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "a\x00", "\u202eb"])
def test_a_name_with_control_characters_is_refused(name: str) -> None:
    """A terminal or a page that shows the name would follow them."""
    with pytest.raises(CertificateRefused, match="printable characters only"):
        certificates.signing_request(KEY, subject_name=name)
