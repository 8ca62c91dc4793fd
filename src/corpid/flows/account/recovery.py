"""Recovery of a forgotten password by a link, with the second factor.

Every request gets the same answer, and work that depends on the account is done after it.
Source: D44, D45, D47
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from corpid.flows import encrypted_values, namespaces, notifications
from corpid.flows.account import enrolments, links
from corpid.flows.authentication import second_factors, throttle
from corpid.flows.authentication.throttle import Throttled
from corpid.rules.directory import names
from corpid.rules.directory.actors import ANONYMOUS
from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import RECOVERIES_PER_ACCOUNT, RECOVERIES_PER_ADDRESS
from corpid.rules.networks import site

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.records import User


async def ask(context: RequestContext) -> None:
    """Count a request of this address. Raises Throttled (D47)."""
    kind = namespaces.RECOVERIES
    window = str(int(context.now // kind.seconds))
    requests = kind.entry(context.provider.policy.base_url, site(context.address), window)
    if await context.count(requests) > RECOVERIES_PER_ADDRESS:
        raise Throttled(ceil(kind.seconds - context.now % kind.seconds))


async def answer(context: RequestContext, user_name: str, *, browser_key: str, digest: bytes = b"") -> None:
    """Send the recovery e-mail, after the request was answered.

    Nothing is sent without an account and an address. An account gets a few while a link works; more are dropped. A
    browser known for the account has a share of its own, so that strangers cannot lock its owner out. An enrolment
    begun with an earlier link continues, since somebody else may have asked. `digest` is the SHA-256 of the form: for
    the same bytes one e-mail is sent. If a store is away, nothing is sent, and nothing stays counted. Source: D44, D45,
    D47, D73
    """
    try:
        user = await _named(context, user_name)
        if user is None or not user.email or not await _admitted(context, user, browser_key, digest):
            return
        if (
            not user.enabled
            or not (await second_factors.held_factors(context.provider.registry, user.user_id)).second_factor
        ):
            notifications.no_link(context, user)
            return
        link = await links.make_link(
            context.provider.registry,
            user,
            "password",
            actor=ANONYMOUS,
            base_url=context.provider.policy.base_url,
            now=context.now,
            new_id=context.provider.new_id,
            request_id=context.request_id,
            address=context.address,
            spared=await enrolments.under_way(context, user, "password"),
        )
        purpose = links.PURPOSES["password"]
        notifications.link(
            context.provider.mail,
            user,
            link,
            heading=purpose.heading,
            lead=purpose.lead,
            provider_name=context.provider.policy.name,
        )
    except StoreUnavailable:
        await context.counts.take_back(context.provider.transient, now=context.now)


async def _named(context: RequestContext, user_name: str) -> User | None:
    try:
        name = names.user_name(user_name)
    except ValueError:
        return None
    return await context.provider.registry.directory.user_by_name(name)


async def _admitted(context: RequestContext, user: User, browser_key: str, digest: bytes) -> bool:
    if digest and not await encrypted_values.is_first_rejection(context, ("forgotten password", user.user_id), digest):
        return False
    known = await throttle.is_known(context, names.user_name(user.user_name), browser_key, user_id=user.user_id)
    emails = namespaces.RECOVERY_EMAILS.entry(
        context.provider.policy.base_url, user.user_id, browser_key if known else ""
    )
    return await context.count(emails) <= RECOVERIES_PER_ACCOUNT
