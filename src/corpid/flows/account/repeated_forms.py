"""Claims of forms: one that is sent twice is used once (D15, D73)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces
from corpid.flows.account.own_sessions import digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.account.own_sessions import SelfServiceRequest
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext


class _AcceptedForm(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The form that a session has accepted last."""

    save_id: str
    """of this acceptance alone"""
    sent: str
    """page and digest of the form"""
    led_to: str


_NEWEST_FORM: Final = namespaces.NEWEST_FORM.holding(_AcceptedForm)


@dataclass(frozen=True, kw_only=True, slots=True)
class FormClaim:
    """A form that nobody else may use until it is released."""

    sent: str
    entries: tuple[Entry[str], ...]
    """of the form; and of its use after another form was accepted"""


async def claim(
    context: RequestContext, visit: SelfServiceRequest, page: str, form: Mapping[str, str]
) -> FormClaim | str:
    """Claim a form before it is used.

    If the session accepted the same form last, returns the address to which it led; empty while it is in use. If the
    session has accepted another form since, that result may no longer be true, and the form is used again. A claim ends
    after a minute, so that a process that died blocks nobody for longer. Raises StoreUnavailable. Source: D15, D73,
    docs/architecture.md, "One-time use"
    """
    digest = digest_of(form)
    sent, entry = f"{page} {digest}", _entry(context, visit, page, digest)
    async with context.provider.transient.batch(context.now) as batch:
        if await entry.add(batch, ""):
            return FormClaim(sent=sent, entries=(entry,))
        if not await entry.get(batch):
            return ""
        newest = await _newest(context, visit).get(batch)
        if newest is not None and newest.sent == sent:
            return newest.led_to
        # An entry for each acceptance: of identical forms that come after it, the first to add that entry is used.
        again = _entry(context, visit, page, digest, newest.save_id if newest else "")
        return FormClaim(sent=sent, entries=(entry, again)) if await again.add(batch, "") else ""


async def release(context: RequestContext, claimed: FormClaim) -> None:
    """Release a claimed form that changed nothing. Raises StoreUnavailable. Source: D15, D73"""
    async with context.provider.transient.batch(context.now) as batch:
        await claimed.entries[-1].take(batch)


async def save(context: RequestContext, visit: SelfServiceRequest, claimed: FormClaim, led_to: str) -> None:
    """Save the address to which an accepted form led.

    It counts for ten minutes, until the session accepts another form. Raises StoreUnavailable. Source: D15, D73
    """
    newest = _AcceptedForm(save_id=context.provider.new_id(), sent=claimed.sent, led_to=led_to)
    async with context.provider.transient.batch(context.now) as batch:
        for entry in claimed.entries:
            await entry.put(batch, led_to, seconds=_NEWEST_FORM.seconds)
        await _newest(context, visit).put(batch, newest)


def _entry(context: RequestContext, visit: SelfServiceRequest, *parts: str) -> Entry[str]:
    return namespaces.SAVED_FORM.entry(context.provider.policy.base_url, visit.session.session_id, *parts)


def _newest(context: RequestContext, visit: SelfServiceRequest) -> Entry[_AcceptedForm]:
    return _NEWEST_FORM.entry(context.provider.policy.base_url, visit.session.session_id)
