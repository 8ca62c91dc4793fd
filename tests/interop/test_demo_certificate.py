"""The certificate of a provider for developers, its authority, and the host that other machines reach."""

from __future__ import annotations

import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from corpid import own_certificates
from corpid.own_certificates import OWN_MACHINE
from corpid.web.http.server import CertificateUnusable
from corpid_dev import hosting
from corpid_dev.hosting import HostUnusable, NetworkHost

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime.now(UTC).replace(microsecond=0)


def spoken(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> str:
    """The TLS version in which a client that asks for this name and the server agree."""
    here, there = socket.socketpair()

    def answer() -> None:
        try:
            with server.wrap_socket(there, server_side=True) as secured:
                secured.send(b"x")
        except OSError:
            there.close()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        with client.wrap_socket(here, server_hostname=name) as secured:
            secured.recv(1)
            return secured.version() or ""
    finally:
        here.close()
        thread.join()


@pytest.mark.parametrize("host", ["192.0.2.2", "fd00::2", "laptop.local", "laptop"])
def test_a_client_with_the_authority_trusts_this_host_alone(host: str, tmp_path: Path) -> None:
    """RFC 5280: also under the strict rules that Python has from 3.13 on."""
    made = own_certificates.keep_certificate(tmp_path / "tls", host, now=NOW)
    client = made.client_context()
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    assert spoken(made.server_context(), client, host) == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError):
        spoken(made.server_context(), client, "other.local")
    with pytest.raises(ssl.SSLCertVerificationError):
        spoken(made.server_context(), ssl.create_default_context(), host)


@pytest.mark.parametrize(
    ("hosts", "others"),
    [
        (OWN_MACHINE, ["bank.example", "192.0.2.2", "127.0.0.2", "fd00::2"]),
        (("laptop.local",), ["bank.example", "other.local", "127.0.0.1", "fd00::2"]),
        (("192.0.2.2",), ["bank.example", "localhost", "192.0.2.3", "fd00::2"]),
        (("fd00::2",), ["bank.example", "localhost", "192.0.2.2", "fd00::3"]),
    ],
)
def test_whoever_has_the_authoritys_key_can_certify_its_hosts_alone(
    hosts: tuple[str, ...], others: list[str], tmp_path: Path
) -> None:
    """RFC 5280 §4.2.1.10: its key in a file is no key to the websites that a person visits."""
    made = own_certificates.keep_certificate(tmp_path / "tls", *hosts, now=NOW)
    client = made.client_context()
    for host in hosts:
        assert spoken(made.server_context(), client, host) == "TLSv1.3"
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0
    signing = load_pem_private_key((made.authority.parent / "ca.key").read_bytes(), None)
    assert isinstance(signing, ec.EllipticCurvePrivateKey)
    for other in others:
        stolen = own_certificates._new(  # as a thief would, with the same key
            tmp_path,
            authority,
            signing,
            [own_certificates._general_name(other)],
            NOW,
        )
        with pytest.raises(ssl.SSLCertVerificationError, match=r"permitted subtree|excluded subtree"):
            spoken(stolen.server_context(), client, other)


def test_the_authority_of_other_machines_certifies_no_further_key(tmp_path: Path) -> None:
    """Its private key is in no file: a phone that trusts it trusts this certificate alone."""
    made = own_certificates.keep_certificate(tmp_path / "tls", "laptop.local", now=NOW, renewable=False)
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0
    keys = [load_pem_private_key(each.read_bytes(), None) for each in made.key.parent.iterdir() if "key" in each.name]
    assert len(keys) == 1
    assert keys[0].public_key() != authority.public_key()
    assert {each.name for each in made.key.parent.iterdir()} == {"ca.crt", "certificate.pem", "key.pem"}
    assert all(each.stat().st_mode & 0o077 == 0 for each in made.key.parent.iterdir())
    assert made.authority_ends == made.ends
    assert own_certificates.keep_certificate(tmp_path / "tls", "laptop.local", now=NOW, renewable=False) == made


def test_its_files_are_their_owners_alone(tmp_path: Path) -> None:
    """D43: the authority's key, too."""
    own_certificates.keep_certificate(tmp_path / "tls", "laptop.local", now=NOW)
    files = list((tmp_path / "tls").iterdir())
    assert {each.name for each in files} == {"ca.crt", "ca.key", "certificate.pem", "key.pem"}
    assert all(each.stat().st_mode & 0o077 == 0 for each in (tmp_path / "tls", *files))


def test_it_is_kept_while_it_is_good(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    first = own_certificates.keep_certificate(folder, "laptop.local", now=NOW)
    assert own_certificates.keep_certificate(folder, "laptop.local", now=NOW + timedelta(days=80)) == first
    assert (first.ends - NOW).days == 90
    shown = x509.load_pem_x509_certificate(first.chain.read_bytes())
    assert first.fingerprint.replace(":", "").lower() == shown.fingerprint(shown.signature_hash_algorithm).hex()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("host", "days"),
    [("other.local", 0), ("192.0.2.2", 0), ("laptop.local", 84), ("laptop.local", 200), ("laptop.local", -2)],
)
def test_another_host_or_its_end_makes_a_new_one(host: str, days: int, tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    first = own_certificates.keep_certificate(folder, "laptop.local", now=NOW)
    second = own_certificates.keep_certificate(folder, host, now=NOW + timedelta(days=days))
    assert second.fingerprint != first.fingerprint


@pytest.mark.parametrize("name", ["ca.crt", "certificate.pem", "key.pem"])
@pytest.mark.parametrize("damage", ["gone", "empty", "of another one"])
def test_a_damaged_file_makes_a_new_one(name: str, damage: str, tmp_path: Path) -> None:
    """A start that was killed while it wrote them is no obstacle to the next."""
    first = own_certificates.keep_certificate(tmp_path / "tls", "laptop.local", now=NOW)
    other = own_certificates.keep_certificate(tmp_path / "other", "laptop.local", now=NOW)
    broken, foreign = tmp_path / "tls" / name, tmp_path / "other" / name
    broken.unlink()
    if damage != "gone":
        broken.write_bytes(b"" if damage == "empty" else foreign.read_bytes())
    second = own_certificates.keep_certificate(tmp_path / "tls", "laptop.local", now=NOW)
    assert second.fingerprint not in {first.fingerprint, other.fingerprint}
    assert spoken(second.server_context(), second.client_context(), "laptop.local")


@pytest.mark.parametrize("days", [84, 200, 3000])
def test_the_authority_outlives_what_it_certifies(days: int, tmp_path: Path) -> None:
    """It is in trust stores and browsers: a new certificate changes nothing there."""
    first = own_certificates.keep_certificate(tmp_path, *OWN_MACHINE, now=NOW)
    trusted = first.authority.read_bytes()
    second = own_certificates.keep_certificate(tmp_path, *OWN_MACHINE, now=NOW + timedelta(days=days))
    assert (second.authority.read_bytes(), second.fingerprint == first.fingerprint) == (trusted, False)
    assert second.ends <= second.authority_ends
    for name in ("certificate.pem", "key.pem"):
        (tmp_path / name).unlink()
        assert own_certificates.keep_certificate(tmp_path, *OWN_MACHINE, now=NOW).authority.read_bytes() == trusted


@pytest.mark.parametrize("case", ["its end is near", "its key is gone", "its key is another one", "another host"])
def test_an_authority_that_cannot_certify_is_replaced(case: str, tmp_path: Path) -> None:
    first = own_certificates.keep_certificate(tmp_path, "localhost", now=NOW)
    trusted = first.authority.read_bytes()
    if case == "its key is gone":
        (tmp_path / "ca.key").unlink()
    elif case == "its key is another one":
        (tmp_path / "ca.key").write_bytes(first.key.read_bytes())
    if case != "another host":
        assert own_certificates.keep_certificate(tmp_path, "localhost", now=NOW) == first, "it certifies what it did"
    later = NOW + timedelta(days={"its end is near": 3600, "another host": 0}.get(case, 84))
    second = own_certificates.keep_certificate(
        tmp_path, "127.0.0.1" if case == "another host" else "localhost", now=later
    )
    assert second.authority.read_bytes() != trusted
    assert second.ends > later + timedelta(days=80)


def test_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    """The authority that one of them has printed is that of all."""
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: own_certificates.keep_certificate(tmp_path, "localhost", now=NOW), range(8)))
    assert len({each.fingerprint for each in made}) == 1
    assert spoken(made[0].server_context(), made[0].client_context(), "localhost")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "tls").write_text("")
    with pytest.raises(CertificateUnusable, match=rf"no certificate can be kept in {tmp_path}/tls: "):
        own_certificates.keep_certificate(tmp_path / "tls", "localhost", now=NOW)


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ("localhost", "only this machine reaches localhost. For https there, give --tls"),
        ("demo.localhost", "only this machine reaches"),
        ("127.0.0.1", "only this machine reaches 127.0.0.1. For https there, give --tls and no --host"),
        ("::1", "only this machine reaches ::1"),
        ("0.0.0.0", "other machines do not reach 0.0.0.0"),
        ("fe80::1", "other machines do not reach fe80::1"),
        ("203.0.113.9", "203.0.113.9 is not an address of this machine"),
        ("https://laptop.local", "neither a host name nor an address"),
        ("laptop.local:8400", "neither a host name nor an address"),
        ("", "neither a host name nor an address"),
        ("a_b", "neither a host name nor an address"),
        ("no-such-machine.invalid", "this machine cannot resolve that name"),
    ],
)
def test_a_host_that_others_cannot_reach_is_refused_with_one_that_they_can(host: str, says: str) -> None:
    with pytest.raises(HostUnusable, match="(?i)" + says) as refused:
        hosting.find(host)
    assert (hosting.own_address() or "connect it") in str(refused.value)


def test_auto_is_this_machines_address_on_the_network() -> None:
    address = hosting.own_address()
    if address is None:
        with pytest.raises(HostUnusable, match="no address on a network"):
            hosting.find("auto")
        return
    assert hosting.find("auto") == hosting.find(f"{address}.") == NetworkHost(host=address, addresses=(address,))


def test_a_name_that_leads_to_a_loopback_address_here_is_served_on_the_network_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Debian's /etc/hosts says that of a machine's own name; the demo RP goes that way, a phone another."""
    address = hosting.own_address()
    if address is None:
        pytest.skip("this machine has no address on a network")
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.1.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    found = hosting.find("Laptop")
    assert found == NetworkHost(host="laptop", addresses=("127.0.1.1", address))
    assert found.reached_at == address
    assert found.is_name


def test_a_name_of_another_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("203.0.113.9", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    with pytest.raises(HostUnusable, match=r"resolves to 203\.0\.113\.9, not to this machine"):
        hosting.find("laptop.local")
