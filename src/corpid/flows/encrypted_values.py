"""Values that this server encrypts and reads again (D34, D73).

Each can be read at one place alone.

A form that is rejected, or is still to be confirmed, is answered by a redirect, so that Reload and Back send nothing
again: what was typed is kept for ten minutes, without secrets, and can be read any number of times. A secret that is
shown once can be read for a minute, in the session that made it, until its person has acknowledged it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows import namespaces
from corpid.jose import encryption
from corpid.jose.encoding import MalformedToken, from_base64url, tuple_bytes
from corpid.texts import Phrase, pack_text, unpack_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.stores.transient import TransientBatch

_SECRET_KIND: Final = "shown once"
_FORM_KIND: Final = "kept form"
SECRETS: Final = frozenset({"form_token", "password", "code", "passkey"})
"""fields that are never kept"""


def encrypt_value(context: RequestContext, plaintext: bytes, kind: str, *place: str, bound_to: tuple[str, ...]) -> str:
    """Encrypt with a key of this kind and place alone.

    Returns URL-safe text. It opens only together with `bound_to`, which is not contained. Source: D34
    """
    nonce = from_base64url(context.provider.new_id())[: encryption.NONCE_BYTES]
    return encryption.seal(plaintext, _key(context, kind, *place), nonce, context=tuple_bytes(*bound_to))


def decrypt_value(context: RequestContext, text: str, kind: str, *place: str, bound_to: tuple[str, ...]) -> bytes:
    """Decrypt the result of `encrypt_value`. Raises MalformedToken for anything else. Source: D34"""
    return encryption.unseal(text, _key(context, kind, *place), context=tuple_bytes(*bound_to))


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredForm:
    """A form and what its page says about it."""

    fields: Mapping[str, str] = field(default_factory=dict)
    """what was typed, without secrets"""
    errors: tuple[tuple[str, Phrase], ...] = ()
    """the field of each, empty for the page as a whole"""
    checked: bool = False
    """whether something is left to confirm: its check page is shown"""
    digest: bytes = b""
    """SHA-256 of the form as it was sent, to recognise it when it is sent again"""


def encrypt_form(context: RequestContext, place: tuple[str, ...], kept: StoredForm) -> str:
    """Encrypt a form for one place, for ten minutes. Returns URL-safe text.

    `place` names whose form it is, and of which page; only there it can be opened. Source: D73
    """
    stored = _FormRecord(
        until=context.now + namespaces.REJECTED_FORM.seconds,
        fields={name: value for name, value in kept.fields.items() if name not in SECRETS},
        errors=[(name, pack_text(text)) for name, text in kept.errors],
        checked=kept.checked,
        digest=kept.digest,
    )
    return encrypt_value(context, msgspec.msgpack.encode(stored), _FORM_KIND, *place, bound_to=place)


def decrypt_form(context: RequestContext, place: tuple[str, ...], sealed: str) -> StoredForm | None:
    """Decrypt the result of `encrypt_form`.

    None for anything else, or after ten minutes. Source: D73
    """
    try:
        opened = decrypt_value(context, sealed, _FORM_KIND, *place, bound_to=place)
        stored = msgspec.msgpack.decode(opened, type=_FormRecord)
        errors = tuple((name, unpack_text(text)) for name, text in stored.errors)
    except (MalformedToken, msgspec.DecodeError, ValueError):
        return None
    if context.now >= stored.until:
        return None
    return StoredForm(fields=stored.fields, errors=errors, checked=stored.checked, digest=stored.digest)


async def save_form(context: RequestContext, place: tuple[str, ...], kept: StoredForm) -> None:
    """Keep a form, in place of the one before.

    Raises StoreUnavailable. Source: D73
    """
    async with context.provider.transient.batch(context.now) as batch:
        await _form_entry(context, place).put(batch, encrypt_form(context, place, kept))


async def read_form(context: RequestContext, place: tuple[str, ...]) -> StoredForm | None:
    """The form at a place, which stays kept.

    Raises StoreUnavailable. Source: D73
    """
    sealed = await _form_entry(context, place).read(context.provider.transient, now=context.now)
    return None if sealed is None else decrypt_form(context, place, sealed)


async def add_error(context: RequestContext, place: tuple[str, ...], error: tuple[str, Phrase]) -> None:
    """Keep an error in addition to the form at a place, once.

    Raises StoreUnavailable. Source: D73
    """
    before = await read_form(context, place) or StoredForm()
    others = tuple(each for each in before.errors if each != error)
    await save_form(context, place, replace(before, errors=(error, *others)))


async def drop_form(context: RequestContext, batch: TransientBatch, place: tuple[str, ...]) -> None:
    """Forget a form once it was accepted. Raises StoreUnavailable. Source: D73"""
    await _form_entry(context, place).take(batch)


async def was_rejected(context: RequestContext, place: tuple[str, ...], digest: bytes) -> bool:
    """Return whether the same bytes were rejected in the last ten minutes.

    Then they are no further attempt. `digest` is the SHA-256 of the form. Raises StoreUnavailable. Source: D73
    """
    return await _digest_entry(context, place, digest).read(context.provider.transient, now=context.now) is not None


async def is_first_rejection(context: RequestContext, place: tuple[str, ...], digest: bytes) -> bool:
    """Note a rejected form, and return whether it is the first one.

    If the same bytes were noted before, the caller gives back what it counted. Raises StoreUnavailable. Source: D73
    """
    async with context.provider.transient.batch(context.now) as batch:
        entry = _digest_entry(context, place, digest)
        first = await entry.add(batch)
    if first:
        context.counts.note(entry, entry.take)
    return first


async def keep_secret(context: RequestContext, place: tuple[str, ...], secret: str) -> None:
    """Keep a secret for a minute, encrypted.

    `place` names its session and page. Raises StoreUnavailable. Source: D73
    """
    stored = _ValueRecord(until=context.now + namespaces.SHOWN_ONCE.seconds, secret=secret)
    sealed = encrypt_value(context, msgspec.msgpack.encode(stored), _SECRET_KIND, *place, bound_to=place)
    async with context.provider.transient.batch(context.now) as batch:
        await _secret_entry(context, place).put(batch, sealed)


async def read_secret(context: RequestContext, place: tuple[str, ...]) -> str:
    """The secret of a place, which stays there.

    Empty if its minute is over. Raises StoreUnavailable. Source: D73
    """
    sealed = await _secret_entry(context, place).read(context.provider.transient, now=context.now)
    if sealed is None:
        return ""
    try:
        opened = decrypt_value(context, sealed, _SECRET_KIND, *place, bound_to=place)
        stored = msgspec.msgpack.decode(opened, type=_ValueRecord)
    except (MalformedToken, msgspec.DecodeError):
        return ""
    return stored.secret if context.now < stored.until else ""


async def forget_secret(context: RequestContext, place: tuple[str, ...]) -> None:
    """Forget a secret that the person has copied. Raises StoreUnavailable. Source: D73"""
    async with context.provider.transient.batch(context.now) as batch:
        await _secret_entry(context, place).take(batch)


def _key(context: RequestContext, kind: str, *place: str) -> bytes:
    return from_base64url(context.keys.mac(kind, context.provider.policy.base_url, *place))


class _ValueRecord(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    until: float
    secret: str


def _secret_entry(context: RequestContext, place: tuple[str, ...]) -> Entry[str]:
    return namespaces.SHOWN_ONCE.entry(context.provider.policy.base_url, *place)


class _FormRecord(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    until: float
    fields: dict[str, str]
    errors: list[tuple[str, Any]]
    checked: bool
    digest: bytes


def _form_entry(context: RequestContext, place: tuple[str, ...]) -> Entry[str]:
    return namespaces.REJECTED_FORM.entry(context.provider.policy.base_url, *place)


def _digest_entry(context: RequestContext, place: tuple[str, ...], digest: bytes) -> Entry[bytes]:
    return namespaces.REJECTED_ONCE.entry(context.provider.policy.base_url, *place, digest.hex())
