"""Enrolment of codes by e-mail, confirmed by a first code (D45)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows import notifications
from corpid.flows.account import enrolments, reauthenticate
from corpid.flows.account.links import Step
from corpid.flows.authentication import second_factor_methods, second_factors, throttle
from corpid.flows.authentication.interactions import StaleStep
from corpid.flows.authentication.second_factor_methods import AskSecondFactor
from corpid.flows.authentication.sign_in import Rejected
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication.sign_in import Way
from corpid.rules.authentication.totp import WrongCode
from corpid.rules.directory import names
from corpid.rules.limits import MAILED_CODES_PER_SIGN_IN
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.flows.account.enrolments import Enrolment, EnrolmentVisit
    from corpid.flows.request_context import RequestContext

_STEPS: Final = frozenset({Step.SECOND_FACTOR, Step.MAILED_CODE})


def offered(context: RequestContext, visit: EnrolmentVisit) -> bool:
    """Return whether this person can choose codes by e-mail.

    Mail must be configured, and a code must have been sent or still be allowed. Source: D45
    """
    at = visit.enrolment
    return second_factor_methods.mails_codes(context, visit.user) and (
        _more(at) or second_factor_methods.under_way(at, now=context.now)
    )


def _more(enrolment: Enrolment) -> bool:
    return enrolment.mails < MAILED_CODES_PER_SIGN_IN


def asked(context: RequestContext, visit: EnrolmentVisit) -> AskSecondFactor:
    """The request of the code's page (D45)."""
    at = visit.enrolment
    sent = second_factor_methods.under_way(at, now=context.now)
    return AskSecondFactor(way=Way.EMAIL, email=visit.user.email, under_way=sent, more=_more(at))


async def choose_way(context: RequestContext, visit: EnrolmentVisit, *, decision: str) -> Enrolment:
    """Switch to codes by e-mail and send one, or switch back.

    None is sent if an earlier one can still be typed. The alternative is an app (`second_factor_methods.Way`). Raises
    Rejected and StaleStep. Source: D45
    """
    enrolment = visit.enrolment
    if enrolment.step not in _STEPS:
        raise StaleStep
    if decision == Way.APP.value:
        return await enrolments.claim_step(context, enrolment, enrolment.step, by_email=False)
    if decision != Way.EMAIL.value or not second_factor_methods.mails_codes(context, visit.user):
        raise Rejected(phrase("Choose one of the ways that are shown."))
    if not enrolment.by_email and second_factor_methods.under_way(enrolment, now=context.now):
        return await enrolments.claim_step(context, enrolment, enrolment.step, by_email=True)
    return await _send(context, visit, enrolment.step)


async def _send(context: RequestContext, visit: EnrolmentVisit, step: Step) -> Enrolment:
    enrolment, user = visit.enrolment, visit.user
    if not _more(enrolment):
        raise Rejected(phrase("No more codes can be sent here. Use the newest one, or set up an authenticator app."))
    known = await throttle.is_known(context, names.user_name(user.user_name), enrolment.browser_key)
    await second_factors.count(context, user, enrolment.browser_key, known=known)
    changes = {"by_email": True, "mails": enrolment.mails + 1, "mailed_at": int(context.now)}
    moved = await enrolments.claim_step(context, enrolment, step, **changes)
    await context.provider.registry.audit.write(
        reauthenticate.event(context, user, AuditAction.ENROLMENT_MAIL_CODE, "ok"), now=context.now
    )
    why = phrase(
        "You are setting up your sign-in with {name}: codes like this one will come to this address. If that is not "
        "you, do not give them the code, and tell the person who manages {name} in your organisation.",
        name=context.provider.policy.name,
    )
    code = second_factors.code_of(context, moved.enrolment_id, moved, user)
    notifications.mailed_code(context, user, code, why=why)
    return moved


async def submit_code(context: RequestContext, visit: EnrolmentVisit, *, code: str) -> Enrolment:
    """Verify the code sent by e-mail: later ones will arrive, too.

    Five misses end the enrolment. Raises Rejected, Stopped, Throttled and StaleStep. Source: D45, D47
    """
    enrolment = visit.enrolment
    if enrolment.step is not Step.MAILED_CODE:
        raise StaleStep
    await throttle.attempt_with_link(context, enrolment.link_hash)
    try:
        second_factors.check(context, enrolment.enrolment_id, enrolment, visit.user, code)
    except WrongCode:
        await reauthenticate.miss(context, visit)
        raise Rejected(
            phrase("This code is not right. Type the one from the newest e-mail, or send a new one.")
        ) from None
    return await enrolments.move(context, enrolment, Step.MAILED_CODE)
