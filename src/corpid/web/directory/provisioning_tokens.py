"""Provisioning tokens in the portal: listed, created, revoked (D60)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows import encrypted_values
from corpid.flows.account import own_sessions
from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import provisioning_tokens
from corpid.flows.directory.write import Refused
from corpid.flows.operations import audit
from corpid.rules.directory.changes import ChangedMeanwhile, Conflict
from corpid.rules.directory.names import remedy_of
from corpid.rules.directory.provisioning_tokens import LONGEST_LIFE_DAYS, MOST_TOKENS, token_name
from corpid.texts import counted, phrase
from corpid.web.directory.change_sentences import OPERATOR
from corpid.web.directory.page_context import SETTINGS, PortalContext, PortalPage, frame, portal_path, section_link
from corpid.web.pages.access_texts import GONE
from corpid.web.pages.errors import refusal_of
from corpid.web.pages.layout import FormView, Link, PageView, ViewPart
from corpid.web.sites import FormResult, InvalidForm, NotFound, Section

if TYPE_CHECKING:
    from datetime import datetime

    from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
    from corpid.texts import Phrase
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View

TOKENS: Final = "tokens"
_NEW: Final = f"{TOKENS}/new"
_REVOKE: Final = re.compile(rf"{TOKENS}/[0-9a-f-]{{36}}/revoke")
_CREATED: Final = re.compile(rf"{TOKENS}/[0-9a-f-]{{36}}/created")
_SCIM: Final = "/scim/v2"
_DAYS: Final = (90, 180, LONGEST_LIFE_DAYS)
"""how long a token may last, as the page offers it"""


class TokenRow(ViewPart, frozen=True, kw_only=True):
    """A token in the list; moments are in the deployment's time zone."""

    name: str
    made_by: str | Phrase
    created: datetime
    used: datetime | None
    until: datetime
    ended: bool
    revoke: str


class Tokens(PageView, frozen=True, kw_only=True):
    template: ClassVar[str] = "manage/tokens.html"
    heading: ClassVar[Phrase] = phrase("Provisioning tokens")

    rows: tuple[TokenRow, ...]
    new: str
    """the address on which one is created; empty if there are as many as there may be"""
    most: int = MOST_TOKENS


class NewToken(FormView, frozen=True, kw_only=True):
    """The form of a new token. Fields: name, days, token_id."""

    template: ClassVar[str] = "manage/new_token.html"
    heading: ClassVar[Phrase] = phrase("Create a provisioning token")

    name: str
    lifetimes: tuple[tuple[str, Phrase], ...]
    days: str
    token_id: str
    """of the token to be: a form that is sent twice makes one"""


class TokenCreated(FormView, frozen=True, kw_only=True):
    """A new token, shown for a minute. Its form ends that."""

    template: ClassVar[str] = "manage/token_created.html"
    heading: ClassVar[Phrase] = phrase("Copy the token now")

    name: str
    token: str
    url: str
    until: datetime


class TokenHidden(PageView, frozen=True, kw_only=True):
    """A new token that is no longer shown."""

    template: ClassVar[str] = "manage/token_hidden.html"
    heading: ClassVar[Phrase] = phrase("The token is no longer shown")

    name: str
    revoke: str
    new: str
    """the address on which another is created; empty if there are as many as there may be"""
    back: str


class RevokeToken(FormView, frozen=True, kw_only=True):
    """The confirmation of a token's end."""

    template: ClassVar[str] = "manage/revoke_token.html"

    heading: Phrase
    used: datetime | None


async def show_tokens(at: PortalContext) -> View:
    """The tokens of the entity that they act for, the oldest first."""
    found = await _list_tokens(at)
    names = await provisioning_tokens.name_makers(at.registry, at.actor.entity_id, found)
    return Tokens(
        frame=frame(at, section=SETTINGS, up=section_link(at, SETTINGS)),
        rows=tuple(
            TokenRow(
                name=each.name,
                made_by=(names.get(each.created_by, GONE) if each.created_by.startswith("user:") else OPERATOR),
                created=at.moment(each.created_at),
                used=at.moment(each.last_used_at) if each.last_used_at else None,
                until=at.moment(each.expires_at),
                ended=at.context.now >= each.expires_at,
                revoke=portal_path(at.web, f"{TOKENS}/{each.token_id}/revoke"),
            )
            for each in found
        ),
        new=portal_path(at.web, _NEW) if len(found) < MOST_TOKENS else "",
    )


async def _list_tokens(at: PortalContext) -> list[RegisteredProvisioningToken]:
    return await provisioning_tokens.list_tokens(at.registry, at.actor.entity_id, actor=at.actor)


def _back(at: PortalContext) -> Link:
    return Link(url=portal_path(at.web, TOKENS), text=Tokens.heading)


async def show_new_token(at: PortalContext) -> View:
    await _list_tokens(at)  # refuses who may not see them
    return NewToken(
        frame=frame(at, section=SETTINGS, up=_back(at)),
        name=at.form.get("name", ""),
        lifetimes=(
            ("", phrase("Choose one")),
            *((str(days), counted(days, "{count} day", "{count} days")) for days in _DAYS),
        ),
        days=at.form.get("days", ""),
        token_id=at.web.new_user_id(),
    )


async def create_token(at: PortalContext) -> FormResult:
    """Create a token, and lead to its page. Raises InvalidForm, InvalidInput."""
    name, days, token_id = (at.form.get(each, "") for each in ("name", "days", "token_id"))
    errors: list[FieldError] = []
    try:
        token_name(name)
    except ValueError as error:
        purpose = phrase("Say what the token is for, in at most 100 characters.")
        errors.append(("name", remedy_of(error, purpose)))
    if days not in map(str, _DAYS):
        errors.append(("days", phrase("Choose how long the token lasts.")))
    if errors:
        raise InvalidForm(*errors)
    if not audit.is_user_id(token_id):
        raise InvalidInput(phrase("This form is not complete. Fill it in again."))
    secret = at.provider.new_id()
    try:
        record = await provisioning_tokens.add_token(
            at.registry,
            at.actor.entity_id,
            name,
            days=int(days),
            token=secret,
            token_id=token_id,
            actor=at.actor,
            now=at.context.now,
        )
    except ChangedMeanwhile:
        raise InvalidInput(
            phrase(
                "This form was sent before, and its token was shown then. If you lost it, revoke it and create another."
            )
        ) from None
    except (Refused, Conflict) as refused:
        raise InvalidInput(refusal_of(refused)) from None
    page = f"{TOKENS}/{record.token_id}/created"
    await encrypted_values.keep_secret(at.context, own_sessions.form_place(at.visit, page, "token"), secret)
    return FormResult("", page)


async def _load_token(at: PortalContext) -> RegisteredProvisioningToken:
    token_id = at.page.split("/")[1]
    found = next((each for each in await _list_tokens(at) if each.token_id == token_id), None)
    if found is None:
        raise NotFound
    return found


def _place(at: PortalContext) -> tuple[str, ...]:
    """The place of the page's token in this session."""
    return own_sessions.form_place(at.visit, at.page, "token")


async def show_created(at: PortalContext) -> View:
    """A new token, or that it is no longer shown. Raises NotFound."""
    found = await _load_token(at)
    secret = await encrypted_values.read_secret(at.context, _place(at))
    if not secret:
        return TokenHidden(
            frame=frame(at, section=SETTINGS, up=_back(at)),
            name=found.name,
            revoke=portal_path(at.web, f"{TOKENS}/{found.token_id}/revoke"),
            new=portal_path(at.web, _NEW) if len(await _list_tokens(at)) < MOST_TOKENS else "",
            back=portal_path(at.web, TOKENS),
        )
    return TokenCreated(
        frame=frame(at, section=SETTINGS),
        name=found.name,
        token=secret,
        url=at.provider.policy.base_url + _SCIM,
        until=at.moment(found.expires_at),
    )


async def hide_token(at: PortalContext) -> FormResult:
    """Show the token no longer. Raises NotFound, access.Forbidden."""
    await _load_token(at)
    await encrypted_values.forget_secret(at.context, _place(at))
    return FormResult("", TOKENS)


async def show_revocation(at: PortalContext) -> View:
    """The confirmation of a token's end."""
    found = await _load_token(at)
    return RevokeToken(
        frame=frame(at, section=SETTINGS, up=_back(at)),
        heading=phrase("Revoke the token “{name}”?", name=found.name),
        used=at.moment(found.last_used_at) if found.last_used_at else None,
    )


async def revoke_token(at: PortalContext) -> FormResult:
    """End a token at once."""
    found = await _load_token(at)
    try:
        await provisioning_tokens.remove_token(at.registry, at.actor.entity_id, found.token_id, actor=at.actor)
    except (Refused, Conflict) as refused:
        raise InvalidInput(refusal_of(refused)) from None
    return FormResult("token-revoked", TOKENS)


SECTION: Final = Section[PortalContext](
    pages={
        TOKENS: PortalPage(view=show_tokens),
        _NEW: PortalPage(view=show_new_token, submit=create_token, fresh=True, needs=("write", "provisioning token")),
    },
    named_pages={
        _CREATED: PortalPage(view=show_created, submit=hide_token, needs=("write", "provisioning token")),
        _REVOKE: PortalPage(
            view=show_revocation, submit=revoke_token, fresh=True, needs=("delete", "provisioning token")
        ),
    },
    fields=frozenset({"name", "days", "token_id"}),
    changes={"token-revoked": phrase("The token is revoked, and no longer works.")},
)
