"""Provisioning tokens in the portal: listed, created, revoked (D60)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows import encrypted_values
from corpid.flows.account import own_sessions
from corpid.flows.directory import provisioning
from corpid.flows.directory.person_names import name_actors
from corpid.flows.directory.write import Refused
from corpid.rules.directory.names import is_user_id, remedy_of
from corpid.rules.directory.provisioning_tokens import (
    LONGEST_LIFE_DAYS,
    MOST_TOKENS,
    RegisteredProvisioningToken,
    token_name,
)
from corpid.rules.directory.records import ChangedMeanwhile, Conflict
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.directory.page_context import (
    SETTINGS,
    PortalContext,
    PortalPage,
)
from corpid.web.pages.components import (
    Actions,
    Cell,
    Field,
    FieldError,
    Form,
    FormView,
    Label,
    Link,
    Value,
    View,
    table,
)
from corpid.web.pages.errors import refusal_of
from corpid.web.sites import Check, FormResult, InvalidForm, NotFound, Section, check_page

if TYPE_CHECKING:
    from datetime import datetime


TOKENS: Final = "tokens"
_NEW: Final = f"{TOKENS}/new"
_REVOKE: Final = re.compile(rf"{TOKENS}/[0-9a-f-]{{36}}/revoke")
_CREATED: Final = re.compile(rf"{TOKENS}/[0-9a-f-]{{36}}/created")
_SCIM: Final = "/scim/v2"
_DAYS: Final = (90, 180, LONGEST_LIFE_DAYS)
"""how long a token may last, as the page offers it"""
HEADING: Final = phrase("Provisioning tokens")


class TokenCreated(FormView, frozen=True, kw_only=True):
    """A new token, shown for a minute. Its form ends that."""

    template: ClassVar[str] = "manage/token_created.html"
    heading: ClassVar[Phrase] = phrase("Copy the token now")

    name: str
    token: str
    url: str
    until: datetime


async def show_tokens(at: PortalContext) -> View:
    """The tokens of the entity that they act for, the oldest first."""
    found = await _list_tokens(at)
    makers = [each.created_by for each in found]
    names = await name_actors(at.registry, at.actor.entity_id, makers, reader=at.actor)

    def row(each: RegisteredProvisioningToken) -> tuple[Value, ...]:
        ended = (Label(phrase("Ended"), "warning"),) if at.context.now >= each.expires_at else ()
        return (
            Cell(values=(each.name, *ended)),
            Cell(values=(at.moment(each.created_at).date(),), notes=(names[each.created_by],)),
            at.moment(each.last_used_at) if each.last_used_at else phrase("Never"),
            at.moment(each.expires_at).date(),
            Link(url=_revocation(at, each), text=phrase("Revoke"), about=each.name),
        )

    columns = (phrase("Purpose"), phrase("Created"), phrase("Last used"), phrase("Valid until"), phrase("End"))
    none = phrase("There are no tokens. You need one only if one of your systems should manage people here.")
    return at.build_page(
        HEADING,
        phrase(
            "With a token, one of your systems (such as your staff directory) adds and removes people and "
            "simple roles here by itself, by SCIM 2.0. Anybody who has a token can do this: keep it secret."
        ),
        None
        if len(found) < MOST_TOKENS
        else phrase(
            "You have {most} tokens, which is the maximum. To create another, revoke one that is no longer used.",
            most=MOST_TOKENS,
        ),
        table(phrase("Tokens of your organisation, the oldest first"), columns, map(row, found), empty=none),
        main_action=at.link(_NEW, phrase("Create a token")) if len(found) < MOST_TOKENS else None,
    )


def _revocation(at: PortalContext, found: RegisteredProvisioningToken) -> str:
    return at.path(f"{TOKENS}/{found.token_id}/revoke")


async def _list_tokens(at: PortalContext) -> list[RegisteredProvisioningToken]:
    return await provisioning.list_tokens(at.registry, at.actor.entity_id, actor=at.actor)


def _back(at: PortalContext) -> Link:
    return at.link(TOKENS, HEADING)


async def show_new_token(at: PortalContext) -> View:
    await _list_tokens(at)  # refuses who may not see them
    days = ((str(days), counted(days, "{count} day", "{count} days")) for days in _DAYS)
    return at.build_page(
        phrase("Create a provisioning token"),
        Form(
            hidden=(("token_id", at.web.new_user_id()),),  # a form that is sent twice makes one token
            parts=(
                Field(
                            name="name", label=phrase("Purpose"), value=at.form.get("name", ""), most=100,
                            hint=phrase("Such as the name of the system that will use it."),
                        ), Field(
                            name="days", label=phrase("How long it lasts"), kind="words",
                            value=at.form.get("days", ""), words=(("", phrase("Choose one")), *days),
                        ),
            ),
            button=phrase("Create the token"),
        ),
        up=_back(at),
    )  # fmt: skip


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
    if not is_user_id(token_id):
        raise InvalidInput(phrase("This form is not complete. Fill it in again."))
    secret = at.provider.new_id()
    try:
        record = await provisioning.add_token(
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
                "This form was already sent, and its token was shown then. If you lost it, revoke it and create "
                "another."
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
        back = _back(at)
        more = len(await _list_tokens(at)) < MOST_TOKENS
        return at.build_page(
            phrase("The token is no longer shown"),
            phrase("The token “{name}” works, but nobody can look it up any more.", name=found.name),
            phrase("If you have not copied it, revoke it and create another one."),
            Actions(
                (
                    Link(url=back.url, text=phrase("Back to the tokens")),
                    Link(url=_revocation(at, found), text=phrase("Revoke the token")),
                    *([at.link(_NEW, phrase("Create another token"))] if more else []),
                ),
                main=True,
            ),
            up=back,
        )
    return TokenCreated(
        frame=at.frame(),
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


async def ask_revocation(at: PortalContext) -> Check:
    """The check before a token is ended at once. Raises NotFound."""
    found, up = await _load_token(at), _back(at)
    used = at.moment(found.last_used_at) if found.last_used_at else None

    async def revoke() -> None:
        try:
            await provisioning.remove_token(at.registry, at.actor.entity_id, found.token_id, actor=at.actor)
        except Conflict as refused:
            raise InvalidInput(refusal_of(refused)) from None

    return Check(
        heading=phrase("Revoke the token “{name}”?", name=found.name),
        parts=(
            phrase(
                "The system that uses it will no longer be able to add, change or remove people here. People and "
                "roles that it added stay."
            ),
            phrase("Last used {moment}", moment=used) if used else phrase("It was never used."),
        ),
        button=phrase("Revoke the token"),
        danger=True,
        up=up,
        change=revoke,
        done=FormResult("token-revoked", TOKENS),
    )


SECTION: Final = Section[PortalContext](
    name=SETTINGS,
    pages={
        TOKENS: PortalPage(view=show_tokens),
        _NEW: PortalPage(view=show_new_token, submit=create_token, fresh=True, needs=("write", "provisioning token")),
    },
    named_pages={
        _CREATED: PortalPage(view=show_created, submit=hide_token, needs=("write", "provisioning token")),
        _REVOKE: check_page(ask_revocation, needs=("delete", "provisioning token")),
    },
    fields=frozenset({"name", "days", "token_id"}),
    changes={"token-revoked": phrase("The token has been revoked, and no longer works.")},
)
