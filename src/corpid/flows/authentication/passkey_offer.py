"""The offer of a passkey after a password, and its two answers.

It is made at most once in a sign-in, after the last factor (`rules.authentication.passkey_offer`). Source: D15, D46
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows import notifications
from corpid.flows.authentication import browsers, passkeys, sign_in, throttle
from corpid.flows.authentication.sign_in import InvalidInput
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication import sign_in as machine
from corpid.rules.authentication.records import FactorChange
from corpid.rules.authentication.sign_in import SignInEvent, StaleStep
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import Person
from corpid.rules.directory.changes import MissingReference
from corpid.rules.limits import PASSKEYS_PER_PERSON
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid.flows.authentication.sign_in import PasskeyOffer
    from corpid.flows.request_context import RequestContext


def options(context: RequestContext, visit: InteractionContext, page: PasskeyOffer) -> str:
    """Return the JSON with which the browser creates the passkey.

    The result is empty if passkeys no longer work here. Opening the page uses nothing up. Source: WebAuthn §5.4, D46
    """
    account = page.account
    return passkeys.creation_options(context, account.user, _subject(visit), known=account.held.passkeys)


def _subject(visit: InteractionContext) -> str:
    """Return what a challenge is for: this person in this sign-in."""
    return f"{visit.interaction.interaction_id} {visit.interaction.user_id}"


async def create(context: RequestContext, visit: InteractionContext, *, answer: str) -> InteractionContext:
    """Add the new passkey and continue the sign-in; return the updated visit.

    The passkey is written only while the session lives that the sign-in's factors began. Raises InvalidInput, Throttled
    and StaleStep, and the errors of `completion.complete_request` if nothing else remains to be asked. Source: WebAuthn
    §7.1, D15, D46, D47
    """
    interaction = visit.interaction
    visit.require(context, SignInEvent.MAKE_PASSKEY)
    user_id = interaction.user_id
    await throttle.change(context, user_id)
    made = await passkeys.newly_made(context, _subject(visit), answer=answer)
    account = await context.provider.registry.factors.account(user_id)
    if account is None or not account.user.enabled:
        raise StaleStep
    person = Person(user_id=user_id)
    authorise(person, "write", Object(kind="credentials", user_id=user_id))
    credentials = account.held.credentials
    change = FactorChange(
        before=credentials,
        after=credentials,
        add_passkey=passkeys.of_person(context, user_id, made),
        passkeys_at_most=PASSKEYS_PER_PERSON,
        session_id=interaction.made_session_id,
    )
    client_id = visit.client.client_id
    event = context.event(person, AuditAction.FACTORS_ADD_PASSKEY, subject=user_id, client_id=client_id)
    if not await context.provider.registry.factors.change(change, event):
        raise InvalidInput(phrase("The passkey could not be set up. Try again, or choose another way."))
    notifications.notify(context, account.user, notifications.PASSKEY_ADDED)
    await browsers.record_passkey(context, visit.cookie, visit.browser)
    return await _onwards(context, visit)


async def decline(context: RequestContext, visit: InteractionContext) -> InteractionContext:
    """Continue the sign-in without a passkey; return the updated visit.

    The person is not offered one again for 30 days. Raises the same errors as `create`. Source: D15, D46
    """
    visit.require(context, SignInEvent.NOT_NOW)
    user_id = visit.interaction.user_id
    authorise(Person(user_id=user_id), "write", Object(kind="credentials", user_id=user_id))
    try:
        await context.provider.registry.factors.decline_passkey(user_id, at=int(context.now))
    except MissingReference:  # the person was erased at this moment
        raise StaleStep from None
    return await _onwards(context, visit)


async def _onwards(context: RequestContext, visit: InteractionContext) -> InteractionContext:
    usable = await sign_in.find_chosen_entity(context, visit) is not None
    return await sign_in.continue_sign_in(context, visit, machine.offer_answered(visit.interaction), usable=usable)
