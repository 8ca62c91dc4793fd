"""The form of a client: its fields follow from the declared members."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import clients as flow
from corpid.flows.directory.write import InvalidMembers, Refused
from corpid.rules.directory.changes import Conflict
from corpid.rules.directory.sections import NOTHING
from corpid.texts import phrase
from corpid.web.operations.clients import CLIENTS, client_page_path, client_path, this_client
from corpid.web.operations.page_context import ConsoleContext, ConsolePage, console_path, frame
from corpid.web.operations.reasons import REASON, acting
from corpid.web.operations.record_forms import is_current, version_of
from corpid.web.pages.client_fields import (
    FIELDS,
    fields_of,
    mistakes,
    named_faults,
    new_values,
    opens_rare,
    read,
    typed_in,
    values_of,
    without_private_keys,
)
from corpid.web.pages.layout import FormView, Link
from corpid.web.pages.refusals import reason_of
from corpid.web.sites import NOTHING_DIFFERENT, EditConflict, FormResult, InvalidForm, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.directory.actors import DeploymentOperator
    from corpid.texts import Phrase
    from corpid.web.pages.client_fields import Fields
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View

_NEW_CLIENT: Final = "new-client"
_CHANGED: Final = phrase(
    "Somebody else has changed this client meanwhile. Nothing of your change was saved: this is the client as it is now."
)


class ClientForm(FormView, frozen=True, kw_only=True):
    """The form of a client.

    Fields: client_id of a new one, its members, and reason.
    """

    template: ClassVar[str] = "console/client_form.html"

    heading: Phrase
    groups: tuple[Fields, ...]
    more: tuple[Fields, ...]
    """those that most clients leave as they are"""
    more_open: bool
    new: bool
    identifier: str = "client_id"
    """the name of its identifier on the wire"""
    client_id: str = ""
    reason: str = ""
    back: str
    notes: tuple[Phrase, ...] = ()


async def new(at: ConsoleContext) -> View:
    return _form(at, phrase("Register a client"), new_values(), back=console_path(at.web, CLIENTS))


async def edit(at: ConsoleContext) -> View:
    """The form of a client that is there. Raises NotFound, access.Forbidden."""
    found = await this_client(at)
    heading = phrase("Change {name}", name=found.name)
    return _form(at, heading, values_of(found), back=client_path(at, found.client_id), version=version_of(found))


def _form(at: ConsoleContext, heading: Phrase, values: Mapping[str, str], *, back: str, version: str = "") -> View:
    given = without_private_keys({**(at.form or values)})
    return ClientForm(
        frame=frame(
            at, section=CLIENTS, up=Link(url=back, text=phrase("Go back")), step_name=at.form.get("step", version)
        ),
        action=console_path(at.web, at.page),
        heading=heading,
        groups=fields_of(given, rare=False),
        more=fields_of(given, rare=True),
        more_open=opens_rare(given, at.errors),
        new=not version,
        client_id=at.form.get("client_id", ""),
        reason=at.form.get(REASON, ""),
        back=back,
        notes=at.notes,
        errors=at.errors,
    )


def _given(at: ConsoleContext, before: Mapping[str, str]) -> dict[str, object]:
    """The members that the form changes, as in a directory file.

    None for those that stay.
    """
    members: dict[str, object] = {}
    for name, each in FIELDS.items():
        typed = typed_in(at.form, name)
        members[name] = None if typed == before[name].strip() else read(each, typed)
    return members


async def add(at: ConsoleContext) -> FormResult:
    """Register the client of the form. Raises InvalidForm, access.Forbidden."""
    client_id = at.form.get("client_id", "").strip()
    no_identifier = [] if client_id else [("client_id", phrase("Enter the identifier of the client."))]
    actor = _checked(at, no_identifier)
    members = {name: value or None for name, value in _given(at, dict.fromkeys(FIELDS, "")).items()}
    members = {name: None if value == NOTHING else value for name, value in members.items()}
    provider = at.context.provider
    try:
        await flow.add_client(
            provider.registry, provider.passwords, client_id, members, actor=actor, rules=at.web.client_rules
        )
    except Refused as refused:
        raise _invalid(refused) from None
    return FormResult("client-added", client_page_path(client_id))


async def change(at: ConsoleContext) -> FormResult:
    """Change the client as the form says. Raises InvalidInput, InvalidForm, EditConflict, NotFound."""
    found, provider = await this_client(at), at.context.provider
    if not is_current(at, found):
        raise EditConflict(_CHANGED)
    actor = _checked(at, [])
    members = _given(at, values_of(found))
    if all(value is None for value in members.values()):
        raise InvalidInput(NOTHING_DIFFERENT)
    try:
        await flow.update_client(
            provider.registry, provider.passwords, found.client_id, members,
            actor=actor, rules=at.web.client_rules, was=found,
        )  # fmt: skip
    except Conflict:
        raise EditConflict(_CHANGED) from None
    except Refused as refused:
        raise _invalid(refused) from None
    provider.registry_cache.drop()
    return FormResult("client-changed", client_page_path(found.client_id))


def _checked(at: ConsoleContext, errors: list[FieldError]) -> DeploymentOperator:
    """The operator with the reason, if the form can be read.

    `errors` are those found before.
    """
    typed = {name: at.form.get(name, "").strip() for name in FIELDS}
    errors = [*errors, *mistakes(typed, developer_mode=at.web.client_rules.developer_mode)]
    try:
        actor = acting(at)
    except InvalidInput as rejected:
        raise InvalidForm(*errors, (REASON, rejected.sentence)) from None
    if errors:
        raise InvalidForm(*errors)
    return actor


def _invalid(refused: Refused) -> InvalidForm:
    """The faults, each at its field.

    The sentences are the registration's own.
    """
    faults = refused.faults if isinstance(refused, InvalidMembers) else (reason_of(refused),)
    return InvalidForm(*named_faults(faults))


SECTION: Final = Section[ConsoleContext](
    pages={
        _NEW_CLIENT: ConsolePage(
            view=new, submit=add, fresh=True, kept=without_private_keys, needs=("write", "client")
        ),
    },
    named_pages={
        re.compile(r"edit-client/[^/]{1,300}"): ConsolePage(
            view=edit, submit=change, fresh=True, kept=without_private_keys, needs=("write", "client")
        )
    },
    fields=frozenset({"client_id", REASON, *FIELDS}),
)
