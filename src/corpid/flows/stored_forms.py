"""Forms that were not accepted, kept for their pages (D73).

The response to a form that is rejected, or is still to be confirmed, is a redirect, so that Reload and Back send
nothing again. What was typed is kept encrypted for ten minutes, without secrets, and can be read any number of times.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows import encrypted_values, namespaces
from corpid.jose.encoding import MalformedToken
from corpid.texts import Phrase, pack_text, unpack_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.stores.transient import TransientBatch

_KIND: Final = "kept form"
SECRETS: Final = frozenset({"form_token", "password", "code", "passkey"})
"""fields that are never kept"""


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


class _FormRecord(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    until: float
    fields: dict[str, str]
    errors: list[tuple[str, Any]]
    checked: bool
    digest: bytes


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
    return encrypted_values.encrypt_value(context, msgspec.msgpack.encode(stored), _KIND, *place, bound_to=place)


def decrypt_form(context: RequestContext, place: tuple[str, ...], sealed: str) -> StoredForm | None:
    """Decrypt the result of `encrypt_form`.

    None for anything else, or after ten minutes. Source: D73
    """
    try:
        opened = encrypted_values.decrypt_value(context, sealed, _KIND, *place, bound_to=place)
        stored = msgspec.msgpack.decode(opened, type=_FormRecord)
        errors = tuple((name, unpack_text(text)) for name, text in stored.errors)
    except (MalformedToken, msgspec.DecodeError, ValueError):
        return None
    if context.now >= stored.until:
        return None
    return StoredForm(fields=stored.fields, errors=errors, checked=stored.checked, digest=stored.digest)


def _entry(context: RequestContext, place: tuple[str, ...]) -> Entry[str]:
    return namespaces.REJECTED_FORM.entry(context.provider.policy.base_url, *place)


async def save_form(context: RequestContext, place: tuple[str, ...], kept: StoredForm) -> None:
    """Keep a form, in place of the one before.

    Raises StoreUnavailable. Source: D73
    """
    async with context.provider.transient.batch(context.now) as batch:
        await _entry(context, place).put(batch, encrypt_form(context, place, kept))


async def read_form(context: RequestContext, place: tuple[str, ...]) -> StoredForm | None:
    """The form at a place, which stays kept.

    Raises StoreUnavailable. Source: D73
    """
    sealed = await _entry(context, place).read(context.provider.transient, now=context.now)
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
    await _entry(context, place).take(batch)


def _bytes(context: RequestContext, place: tuple[str, ...], digest: bytes) -> Entry[bytes]:
    return namespaces.REJECTED_ONCE.entry(context.provider.policy.base_url, *place, digest.hex())


async def was_rejected(context: RequestContext, place: tuple[str, ...], digest: bytes) -> bool:
    """Return whether the same bytes were rejected in the last ten minutes.

    Then they are no further attempt. `digest` is the SHA-256 of the form. Raises StoreUnavailable. Source: D73
    """
    return await _bytes(context, place, digest).read(context.provider.transient, now=context.now) is not None


async def is_first_rejection(context: RequestContext, place: tuple[str, ...], digest: bytes) -> bool:
    """Note a rejected form, and return whether it is the first one.

    If the same bytes were noted before, the caller gives back what it counted. Raises StoreUnavailable. Source: D73
    """
    async with context.provider.transient.batch(context.now) as batch:
        entry = _bytes(context, place, digest)
        first = await entry.add(batch)
    if first:
        context.counts.note(entry, entry.take)
    return first
