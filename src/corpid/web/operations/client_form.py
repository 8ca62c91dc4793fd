"""The form of a client: its fields follow from the declared members."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

import msgspec

from corpid.flows.directory import clients as flow
from corpid.flows.directory.write import MembersRefused, Refused
from corpid.rules.directory.sections import NOTHING
from corpid.rules.oauth.records import CLIENT_MEMBERS
from corpid.rules.oauth.scopes import SCOPES
from corpid.texts import phrase
from corpid.web.operations.clients import CLIENT, CLIENTS, client_path, this_client
from corpid.web.operations.page_context import ConsoleContext, Page, console_path, frame
from corpid.web.own_pages import Instead, Invalid, Saved, Section
from corpid.web.pages.layout import FormView, Link
from corpid.web.pages.refusals import reason_of
from corpid.web.pages.views import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.oauth.client_members import Declared
    from corpid.rules.oauth.records import Client
    from corpid.texts import Phrase
    from corpid.web.pages.views import View

_FIELDS: Final[Mapping[str, Declared]] = {name: each for name, each in CLIENT_MEMBERS.items() if each.member.help}
"""the members that an operator sets, in the order of their declaration"""
_NEW_CLIENT: Final = "new-client"
_DIGITS: Final = 18
"""of a number; Python reads at most 4,300"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of the form: a declared member and its value."""

    name: str
    help: str
    kind: str
    """lines, flag, words, day, number or text"""
    value: str
    words: tuple[tuple[str, str], ...] = ()
    """the closed list of values, each with what it says"""
    needed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientForm(FormView):
    """The form of a client.

    Fields: client_id of a new one, and its members.
    """

    template: ClassVar[str] = "console/client_form.html"

    heading: Phrase
    fields: tuple[Field, ...]
    new: bool
    client_id: str = ""
    back: str
    notes: tuple[Phrase, ...] = ()


async def new(at: ConsoleContext) -> View:
    """The form of a new client."""
    values = {name: _written(each, each.default) for name, each in _FIELDS.items()} | {"scopes": "\n".join(SCOPES)}
    return _form(at, phrase("Register a client"), values, back=console_path(at.web, CLIENTS))


async def edit(at: ConsoleContext) -> View:
    """The form of a client that is there. Raises Gone, access.Forbidden."""
    found = await this_client(at)
    heading = phrase("Change {name}", name=found.name)
    return _form(at, heading, _values(found), back=client_path(at, found.client_id), version=_version(found))


def _form(at: ConsoleContext, heading: Phrase, values: Mapping[str, str], *, back: str, version: str = "") -> View:
    given = at.form or values
    return ClientForm(
        frame=frame(
            at, section=CLIENTS, up=Link(url=back, text=phrase("Go back")), step_name=at.form.get("step", version)
        ),
        action=console_path(at.web, at.page),
        heading=heading,
        fields=tuple(_field(each, given.get(name, "")) for name, each in _FIELDS.items()),
        new=not version,
        client_id=at.form.get("client_id", ""),
        back=back,
        notes=at.notes,
        errors=at.errors,
    )


def _field(each: Declared, value: str) -> Field:
    kind = "text"
    if each.listed or each.form == "key set":
        kind = "lines"
    elif each.form in {"flag", "day", "number"}:
        kind = each.form
    elif each.form == "word":
        kind = "words"
    none = (("", "-"),) if each.empties or each.default is None else ()
    return Field(
        name=each.name,
        help=each.member.help.replace("; repeat for several", "; one a line").replace("A file with", "Paste"),
        kind=kind,
        value=value,
        words=(*none, *((word, word) for word in each.values)),
        needed=each.member.needed,
    )


def _values(client: Client) -> dict[str, str]:
    return {name: _written(each, getattr(client, name)) for name, each in _FIELDS.items()}


def _written(each: Declared, value: object) -> str:
    """A member's value as the form shows it."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return "\n".join(value)
    if each.form == "flag":
        return "yes" if value else ""
    return str(value)


def _given(at: ConsoleContext, before: Mapping[str, str]) -> dict[str, object]:
    """The members that the form changes, as in a directory file.

    None for those that stay.
    """
    members: dict[str, object] = {}
    for name, each in _FIELDS.items():
        typed = at.form.get(name, "").replace("\r\n", "\n").strip()
        members[name] = None if typed == before[name].strip() else _read(each, typed)
    return members


def _read(each: Declared, typed: str) -> object:
    if each.listed:
        return [line.strip() for line in typed.split("\n") if line.strip()]
    if each.form == "flag":
        return bool(typed)
    if not typed:
        return NOTHING if each.empties else ""
    if each.form == "number":
        return int(typed) if typed.isascii() and typed.isdigit() and len(typed) <= _DIGITS else typed
    return typed


async def add(at: ConsoleContext) -> Saved:
    """Register the client of the form. Raises Invalid, access.Forbidden."""
    client_id = at.form.get("client_id", "").strip()
    if not client_id:
        raise Invalid(("client_id", phrase("Enter an identifier.")))
    members = {name: value or None for name, value in _given(at, dict.fromkeys(_FIELDS, "")).items()}
    members = {name: None if value == NOTHING else value for name, value in members.items()}
    provider = at.context.provider
    try:
        await flow.add_client(
            provider.registry, provider.passwords, client_id, members, actor=at.actor, rules=at.web.client_rules
        )
    except Refused as refused:
        raise _invalid(refused) from None
    return Saved("client-added", f"{CLIENT}/{quote(client_id, safe='')}")


async def change(at: ConsoleContext) -> Saved:
    """Change the client as the form says. Raises Invalid, Instead, access.Forbidden."""
    found, provider = await this_client(at), at.context.provider
    if at.form.get("step", "") != _version(found):
        raise Instead(
            Problem(
                frame=frame(at, section=CLIENTS),
                heading=phrase("Somebody else has changed this client"),
                paragraphs=(phrase("Nothing of your change was saved. Open the client again and repeat it."),),
                back=Link(url=client_path(at, found.client_id), text=phrase("Open it again")),
            ),
            status=409,
        )
    members = _given(at, _values(found))
    here = f"{CLIENT}/{quote(found.client_id, safe='')}"
    if all(value is None for value in members.values()):
        return Saved("", here)
    try:
        await flow.update_client(
            provider.registry, provider.passwords, found.client_id, members, actor=at.actor, rules=at.web.client_rules
        )
    except Refused as refused:
        raise _invalid(refused) from None
    provider.registry_cache.drop()
    return Saved("client-changed", here)


def _version(client: Client) -> str:
    return sha256(msgspec.json.encode(client)).hexdigest()


def _invalid(refused: Refused) -> Invalid:
    """The faults, each at its field.

    The sentences are the registration's own.
    """
    faults = refused.faults if isinstance(refused, MembersRefused) else (reason_of(refused),)
    errors = []
    for fault in faults:
        name, colon, text = fault.partition(": ")
        is_member = bool(colon) and name in _FIELDS
        errors.append((name if is_member else "", phrase("{sentence}.", sentence=text if is_member else fault)))
    return Invalid(*errors)


SECTION: Final = Section[ConsoleContext](
    pages={_NEW_CLIENT: Page(view=new, submit=add, fresh=True)},
    named_pages={re.compile(r"edit-client/[^/]{1,300}"): Page(view=edit, submit=change, fresh=True)},
    fields=frozenset({"client_id", *_FIELDS}),
)
