"""E-mails by SMTP, to a real server in this process (RFC 5321, D48)."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from typing import TYPE_CHECKING, Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from corpid.outbound.mail import MailServer, NoMail, mail_server
from corpid.outbound.smtp import SmtpMail
from corpid.rules.directory import values
from corpid.rules.emails import Email, UrlLine
from corpid.rules.failures import EmailDelayed, MailDelayed, MailRefused, SenderRefused
from corpid.rules.readers import Scalar
from corpid.texts import phrase
from corpid.web.pages.translations import LANGUAGES
from tests.certificates import Authority
from tests.logs import capture_logs
from tests.postbox import RENDERER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from email.message import EmailMessage
    from pathlib import Path

NOON = 1_800_000_000.0
PERSON = "nina@example.org"


@dataclass(kw_only=True)
class PostOffice:
    """What an SMTP server was handed. `replies` are its answers to the next messages, before it takes them."""

    port: int = 0
    replies: list[str] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    """its answers to the next recipients"""
    senders: list[str] = field(default_factory=list)
    """its answers to the next senders"""
    greeted: int = 0
    """sessions that were begun"""
    left: int = 0
    """sessions that were ended politely"""
    knows_ehlo: bool = True
    cut: bool = False
    """whether it ends the session instead of the next answer to a message"""
    lines: list[asyncio.Transport] = field(default_factory=list)
    tried: int = 0
    taken: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    logged_in: list[tuple[bytes, bytes]] = field(default_factory=list)

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - the library's name
        self.tried += 1
        if self.cut:
            self.cut = False
            self.hang_up()
        if self.replies:
            return self.replies.pop(0)
        message: Any = message_from_bytes(envelope.content, policy=policy.SMTP)
        self.taken.append((envelope.rcpt_tos, message))
        self.raw.append(envelope.content)
        return "250 taken"

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:  # noqa: N802
        if self.recipients:
            return self.recipients.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 known"

    async def handle_MAIL(self, _server: Any, _session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802
        if self.senders:
            return self.senders.pop(0)
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 taken"

    async def handle_EHLO(self, server: Any, session: Any, _envelope: Any, name: str, answers: list[str]) -> list[str]:  # noqa: N802
        if not self.knows_ehlo:
            session.extended_smtp = False
            return ["502 unknown"]
        self._greeted(server, session, name)
        return answers

    async def handle_HELO(self, server: Any, session: Any, _envelope: Any, name: str) -> str:  # noqa: N802
        self._greeted(server, session, name)
        return "250 mail.test"

    def _greeted(self, server: Any, session: Any, name: str) -> None:
        session.host_name = name
        self.greeted += 1
        self.lines.append(server.transport)

    async def handle_QUIT(self, _server: Any, _session: Any, _envelope: Any) -> str:  # noqa: N802
        self.left += 1
        return "221 bye"

    def hang_up(self) -> None:
        """End every session without a word."""
        for line in self.lines:
            line.abort()
        self.lines.clear()

    def authenticate(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, given: Any) -> AuthResult:
        self.logged_in.append((given.login, given.password))
        is_right = given.password == b"se/cret"
        return AuthResult(success=is_right, handled=is_right)


@asynccontextmanager
async def post_office(**options: Any) -> AsyncIterator[PostOffice]:
    office = PostOffice()
    loop = asyncio.get_running_loop()

    def protocol() -> SMTP:
        return SMTP(office, hostname="mail.test", loop=loop, **options)

    server = await loop.create_server(protocol, "127.0.0.1", 0)
    office.port = server.sockets[0].getsockname()[1]
    try:
        yield office
    finally:
        server.close()
        await server.wait_closed()


def here(office: PostOffice, **more: Any) -> MailServer:
    return MailServer(**{"host": "127.0.0.1", "port": office.port, "security": "none", **more})


@asynccontextmanager
async def mail(server: MailServer, *, pauses: tuple[float, ...] = (0.0, 0.0), **more: Any) -> AsyncIterator[SmtpMail]:
    own: dict[str, Any] = {"sender": "sign-in@corp.example", "name": "CorpID", "render": RENDERER.render, **more}
    opened = SmtpMail(server, clock=lambda: NOON, pauses=pauses, **own)
    try:
        yield opened
    finally:
        await opened.close(20)


def new_email(to: str = PERSON, **more: Any) -> Email:
    given: dict[str, Any] = {
        "subject": phrase("Your code for {name}", name="Žiga"),
        "preview": phrase("It works for {minutes} minutes. Do not share it.", minutes=10),
        "parts": (UrlLine(".a line that begins with a dot"),),
        "name": "Nina Žigon",
        **more,
    }
    return Email(to=to, **given)


@contextmanager
def mail_log() -> Iterator[list[Any]]:
    """What is logged of mail meanwhile; it is there when the context has ended."""
    found: list[Any] = []
    with capture_logs() as logged:
        yield found
    found += [entry for entry in logged if entry["event"].startswith("mail_")]


def bodies(message: EmailMessage) -> tuple[str, str]:
    """The text and the HTML of a message, in this order on the line."""
    assert message.get_content_type() == "multipart/alternative"
    parts = list(message.iter_parts())
    assert [part.get_content_type() for part in parts] == ["text/plain", "text/html"]
    text, html = (part.get_content().replace("\r\n", "\n") for part in parts)
    return text, html


async def test_an_email_arrives_as_it_was_written() -> None:
    """RFC 2046 §5.1.4: the same twice, the plainest first; RFC 3834 §5: a machine sent it, and wants no answer."""
    with mail_log() as logged:
        async with post_office() as office:
            async with mail(here(office), reply_to="help@corp.example") as opened:
                opened.post(new_email())
            [(recipients, message)] = office.taken
            assert recipients == [PERSON]
            assert (message["To"], message["From"]) == (PERSON, "CorpID <sign-in@corp.example>")
            assert message["Reply-To"] == "help@corp.example"
            assert message["Subject"] == "Your code for Žiga"
            assert message["Date"] == "Fri, 15 Jan 2027 08:00:00 +0000"
            assert message["Auto-Submitted"] == "auto-generated"
            assert message["Message-ID"].endswith("@corp.example>")
            assert not [name for name in message if name.lower().startswith(("list-", "bcc", "x-"))]
            text, html = bodies(message)
            assert text.startswith("Hello Nina Žigon,\n\n.a line that begins with a dot\n\nCorpID never asks")
            assert "Hello Nina Žigon," in html
    assert logged == []


async def test_an_email_speaks_its_readers_language_and_english_where_there_is_none() -> None:
    with mail_log():
        async with post_office() as office:
            async with mail(here(office)) as opened:
                opened.post(new_email(subject=phrase("Device"), language="ms"))
                opened.post(new_email(subject=phrase("Device"), language="no such tag"))
            found = {message["Content-Language"]: message for _, message in office.taken}
            assert {tag: message["Subject"] for tag, message in found.items()} == {"ms": "Peranti", "en": "Device"}
            assert bodies(found["ms"])[0].startswith("Salam sejahtera Nina Žigon,")
            assert '<html lang="ms"' in bodies(found["ms"])[1]


@pytest.mark.parametrize("language", [each.tag for each in LANGUAGES])
async def test_lines_are_short_and_of_ascii_in_every_script(language: str) -> None:
    """RFC 5322 §2.1.1, RFC 2045 §6.7: any server passes them on, and a reader gets what was written."""
    name = "海港工程有限公司" * 30

    with mail_log() as logged:
        async with post_office() as office:
            async with mail(here(office), name="海港登录") as opened:
                opened.post(new_email(subject=phrase("Invitation to act for {entity}", entity=name), language=language))
            [raw] = office.raw
            assert raw.isascii()
            assert max(map(len, raw.split(b"\r\n"))) <= 78
            [(_, message)] = office.taken
            assert message["Subject"].startswith(("海港", "Inv", "Jem", "邀请"))
            assert message["From"].addresses[0].display_name == "海港登录"
    assert logged == []


@pytest.mark.parametrize(
    "address",
    [
        "nina@example.org\r\nBcc: eve@example.org",
        "a@example.org, eve@example.org",
        "Nina <nina@example.org>",
        "nina",
        "",
    ],
)
async def test_an_address_that_is_more_than_one_address_gets_nothing(address: str) -> None:
    """Header injection: and the others still get theirs."""
    with mail_log() as logged:
        async with post_office() as office:
            async with mail(here(office)) as opened:
                opened.post(new_email(address))
                opened.post(new_email())
            assert [recipients for recipients, _ in office.taken] == [[PERSON]]
    [entry] = logged
    assert entry["event"] == "mail_failed"
    assert "example.org" not in str(entry)


@pytest.mark.parametrize(
    "address",
    [
        "o'neil+sign-in@b",
        "!#$%&'*+-/=.?^_`{|}~@xn--bcher-kva.example",
        f"{'a' * 64}@{'.'.join(['c' * 63] * 2)}.{'d' * 61}",
        ".".join("ab" * 16) + "@127.0.0.1",
    ],
)
async def test_whatever_a_directory_takes_for_an_address_is_sent_to(address: str) -> None:
    """RFC 5321 §4.1.2: nobody's e-mails are lost with a line of the log alone."""
    assert values.email(Scalar(line=1, text=address, plain=False)) == address

    with mail_log() as logged:
        async with post_office() as office:
            async with mail(here(office)) as opened:
                opened.post(new_email(address))
            [(recipients, message)] = office.taken
            assert recipients == [address]
            assert message["To"].addresses[0].addr_spec == address
    assert logged == []


async def test_a_subject_keeps_to_its_line() -> None:
    """Header injection"""
    with mail_log():
        async with post_office() as office:
            async with mail(here(office)) as opened:
                opened.post(new_email(subject=phrase("{name}", name="Hi\r\nBcc: eve@example.org\u2028\x85\x00")))
            [(recipients, message)] = office.taken
            assert recipients == [PERSON]
            assert message["Bcc"] is None
            assert message["Subject"].replace("\u2060", "") == r"Hi Bcc: eve@example.org \x00"


async def test_a_server_that_is_busy_is_asked_again() -> None:
    with mail_log() as logged:
        async with post_office() as office:
            office.replies = ["451 later", "421 later still"]
            async with mail(here(office)) as opened:
                opened.post(new_email())
            assert (office.tried, len(office.taken)) == (3, 1)
    assert [entry["event"] for entry in logged] == ["mail_delayed", "mail_delayed"]


async def test_a_server_that_refuses_for_good_is_not_asked_again_and_the_log_names_nobody() -> None:
    """D48: servers repeat the address in what they say."""
    with mail_log() as logged:
        async with post_office() as office:
            office.replies = [f"550 <{PERSON}> is unknown"]
            async with mail(here(office)) as opened:
                opened.post(new_email())
            assert (office.tried, office.taken) == (1, [])
    [entry] = logged
    assert (entry["event"], entry["detail"]) == ("mail_failed", "SMTPDataError 550")


@pytest.mark.parametrize(
    ("recipient", "data", "outcome"),
    [
        ("", "", None),
        (f"550 5.1.1 <{PERSON}> unknown", "", MailRefused),
        ("550 no such user", "", MailRefused),
        ("553 5.1.3 bad address", "", MailRefused),
        ("550 5.7.1 relaying denied", "", EmailDelayed),
        ("554 5.7.1 recipient rejected", "", EmailDelayed),
        ("556 5.1.10 null MX", "", MailRefused),
        ("556 no mail here", "", MailRefused),
        ("550 5.4.1 no such host", "", MailRefused),
        ("554 5.1.1 unknown", "", MailRefused),
        ("554 no", "", EmailDelayed),
        ("550 5.2.1 closed", "", MailRefused),
        ("552 5.2.2 full", "", MailRefused),
        ("450 4.2.1 mailbox busy", "", EmailDelayed),
        ("", "554 5.6.0 unwanted", MailRefused),
        ("", "451 later", EmailDelayed),
        ("", "554 sender is not verified", EmailDelayed),
        ("", "550 5.7.26 not authenticated", EmailDelayed),
    ],
)
async def test_an_email_that_is_waited_for_is_tried_once_and_what_may_be_our_fault_only_delays_it(
    recipient: str, data: str, outcome: type[Exception] | None
) -> None:
    """D60, RFC 3463 §3.2: a server that does not let us relay must not end every invitation; D48: it names nobody."""
    with mail_log() as logged:
        async with post_office() as office:
            office.recipients, office.replies = [recipient] if recipient else [], [data] if data else []
            async with mail(here(office)) as opened:
                if outcome is None:
                    await opened.deliver(new_email())
                else:
                    with pytest.raises(outcome) as raised:
                        await opened.deliver(new_email())
                    assert raised.type is outcome
                    assert PERSON not in str(raised.value)
            assert len(office.taken) == (outcome is None)
            assert office.tried == (not recipient)
    assert logged == []


@pytest.mark.parametrize("address", ["", "nina", "a@example.org, eve@example.org"])
async def test_an_email_that_is_waited_for_goes_to_one_address_or_is_refused(address: str) -> None:
    """Header injection"""
    with mail_log():
        async with post_office() as office, mail(here(office)) as opened:
            with pytest.raises(MailRefused):
                await opened.deliver(new_email(address))
            assert office.tried == 0


async def test_an_email_that_is_waited_for_is_delayed_by_a_dead_server_and_by_none() -> None:
    """D60: it is tried again later."""
    with mail_log():
        async with post_office() as office:
            server = here(office)
        async with mail(server) as opened:
            with pytest.raises(MailDelayed):
                await opened.deliver(new_email())
        with pytest.raises(MailDelayed, match="mail_url"):
            await NoMail().deliver(new_email())


async def test_a_dead_server_holds_nobody_up() -> None:
    """The e-mail is lost after the last attempt, and the log says so."""
    with mail_log() as logged:
        async with post_office() as office:
            server = here(office)
        async with mail(server) as opened:
            opened.post(new_email())
    assert [entry["event"] for entry in logged] == ["mail_delayed", "mail_delayed", "mail_failed"]
    assert PERSON not in str(logged)


async def test_what_waits_when_corpid_stops_is_dropped_after_a_moment() -> None:
    with mail_log() as logged:
        async with post_office() as office:
            server = here(office)
        opened = SmtpMail(
            server, sender="a@corp.example", name="CorpID", render=RENDERER.render, clock=lambda: NOON, pauses=(3600.0,)
        )
        for _ in range(10):
            opened.post(new_email())
        await opened.close(0.2)
    assert logged[-1]["detail"] == "6 e-mails were waiting when CorpID stopped"


@pytest.mark.full
async def test_stopping_takes_a_moment_whatever_the_senders_are_at() -> None:
    """Also while a connection is made or refused: a cancellation that is lost there is made again."""

    async def stop(server: MailServer, after: float) -> None:
        opened = SmtpMail(
            server, sender="a@corp.example", name="CorpID", render=RENDERER.render, clock=lambda: NOON, pauses=(3600.0,)
        )
        for _ in range(20):
            opened.post(new_email())
        await opened.close(after)

    with mail_log():
        async with post_office() as office:
            server = here(office)
        async with asyncio.timeout(30):
            for number in range(40):
                await stop(server, number * 0.00015)


async def test_a_full_queue_drops_what_comes_then() -> None:
    with mail_log() as logged:
        async with post_office() as office:
            server = here(office)
        opened = SmtpMail(
            server, sender="a@corp.example", name="CorpID", render=RENDERER.render, clock=lambda: NOON, pauses=(3600.0,)
        )
        for _ in range(1001):
            opened.post(new_email())
        await opened.close(0.01)
    assert "1000 e-mails are waiting already" in [entry["detail"] for entry in logged]


def _tls(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context, and a client's that trusts it."""
    authority = Authority("Test CA")
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    own = authority.sign(x509.Name([]), key.public_key(), ca=False, extra=names)
    (folder / "cert.pem").write_bytes(own.public_bytes(Encoding.PEM))
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(*form))
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    client = ssl.create_default_context(cadata=authority.chain[0].public_bytes(Encoding.PEM).decode())
    client.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return server, client


async def test_starttls_comes_before_the_password(tmp_path: Path) -> None:
    """RFC 3207"""
    serving, trusting = _tls(tmp_path)

    with mail_log() as logged:
        offices: list[PostOffice] = []

        def authenticate(*given: Any) -> AuthResult:
            return offices[0].authenticate(*given)

        async with post_office(
            tls_context=serving, require_starttls=True, auth_required=True, authenticator=authenticate
        ) as office:
            offices.append(office)
            server = here(office, host="localhost", security="starttls", user_name="corpid", password="se/cret")
            async with mail(server, tls=trusting) as opened:
                opened.post(new_email())
            assert len(office.taken) == 1
            assert office.logged_in == [(b"corpid", b"se/cret")]
    assert logged == []


async def test_a_password_that_the_server_refuses_is_a_matter_of_the_deployment(tmp_path: Path) -> None:
    """D60: no e-mail is to blame, and none is given up."""
    serving, trusting = _tls(tmp_path)

    with mail_log():
        refusing = PostOffice()
        async with post_office(tls_context=serving, authenticator=refusing.authenticate) as office:
            server = here(office, host="localhost", security="starttls", user_name="corpid", password="changed")
            async with mail(server, tls=trusting) as opened:
                with pytest.raises(SenderRefused, match="535"):
                    await opened.deliver(new_email())
            assert (office.tried, set(refusing.logged_in)) == (0, {(b"corpid", b"changed")})


@pytest.mark.parametrize("offers_tls", [True, False])
async def test_without_a_trusted_certificate_nothing_is_sent(tmp_path: Path, *, offers_tls: bool) -> None:
    """RFC 8314: neither e-mail nor password goes over a line that others read."""
    serving, _ = _tls(tmp_path)

    with mail_log() as logged:
        async with post_office(**({"tls_context": serving} if offers_tls else {})) as office:
            server = here(office, host="localhost", security="starttls", user_name="corpid", password="se/cret")
            async with mail(server, pauses=()) as opened:
                opened.post(new_email())
            assert (office.tried, office.logged_in) == (0, [])
    assert logged[-1]["event"] == "mail_failed"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail.example", ("mail.example", 587, "starttls", None)),
        ("smtps://mail.example", ("mail.example", 465, "tls", None)),
        ("smtp://127.0.0.1:25", ("127.0.0.1", 25, "none", None)),
        ("smtp://[::1]:25", ("::1", 25, "none", None)),
        ("smtp://corpid:se%2Fcret@localhost", ("localhost", 587, "none", "se/cret")),
        ("smtp://10.0.0.5:2525/", ("10.0.0.5", 2525, "starttls", None)),
    ],
)
def test_an_address_says_where_and_how(url: str, expected: tuple[object, ...]) -> None:
    """RFC 8314: in the clear only to this machine itself."""
    found = mail_server(url)
    assert (found.host, found.port, found.security, found.password) == expected
    assert "se/cret" not in repr(found)


@pytest.mark.parametrize(
    "url", ["mail.example", "http://mail.example", "smtp://", "smtp://h:x", "smtp://h/p", "smtp://u@h", "smtp://h?x=1"]
)
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match=r"smtp://USER|USER and PASSWORD") as refused:
        mail_server(url)
    assert "h?x" not in str(refused.value)
    assert "mail.example" not in str(refused.value)
