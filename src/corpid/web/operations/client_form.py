"""The form of a client: its fields follow from the declared members."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows.authentication.sign_in import Rejected
from corpid.flows.directory import clients as flow
from corpid.flows.directory.write import MembersRefused, Refused
from corpid.ports import Conflict
from corpid.rules.directory.sections import NOTHING
from corpid.rules.oauth.client_registration import public_part
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import CLIENT_MEMBERS
from corpid.rules.oauth.scopes import SCOPES
from corpid.rules.oauth.urls import shown
from corpid.texts import phrase
from corpid.web.operations.client_fields import GROUPS
from corpid.web.operations.clients import CLIENTS, client_path, here, this_client
from corpid.web.operations.page_context import ConsoleContext, Page, console_path, frame
from corpid.web.operations.reasons import REASON, acting
from corpid.web.operations.record_forms import Field, changed_meanwhile, is_current, version_of
from corpid.web.pages.errors import sentence
from corpid.web.pages.layout import FormView, Link
from corpid.web.pages.refusals import reason_of
from corpid.web.sites import NOTHING_DIFFERENT, Instead, Invalid, Saved, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.directory.actors import Operating
    from corpid.rules.oauth.client_members import Declared
    from corpid.rules.oauth.records import Client
    from corpid.texts import Phrase
    from corpid.web.operations.client_fields import Words
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View

_FIELDS: Final[Mapping[str, Declared]] = {name: each for name, each in CLIENT_MEMBERS.items() if each.member.help}
"""the members that an operator sets, in the order of their declaration"""
_NEW_CLIENT: Final = "new-client"
_DIGITS: Final = 18
"""of a number; Python reads at most 4,300"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The fields of a group."""

    legend: Phrase
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientForm(FormView):
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
    """The form of a new client."""
    values = {name: _written(each, each.default) for name, each in _FIELDS.items()} | {"scopes": "\n".join(SCOPES)}
    return _form(at, phrase("Register a client"), values, back=console_path(at.web, CLIENTS))


async def edit(at: ConsoleContext) -> View:
    """The form of a client that is there. Raises Gone, access.Forbidden."""
    found = await this_client(at)
    heading = phrase("Change {name}", name=found.name)
    return _form(at, heading, _values(found), back=client_path(at, found.client_id), version=version_of(found))


def _form(at: ConsoleContext, heading: Phrase, values: Mapping[str, str], *, back: str, version: str = "") -> View:
    given = _without_private_keys({**(at.form or values)})
    wrong = {name for name, _ in at.errors}
    changed = {name for name, each in _FIELDS.items() if given.get(name, "") != _written(each, each.default)}
    return ClientForm(
        frame=frame(
            at, section=CLIENTS, up=Link(url=back, text=phrase("Go back")), step_name=at.form.get("step", version)
        ),
        action=console_path(at.web, at.page),
        heading=heading,
        groups=fields_of(given, rare=False),
        more=fields_of(given, rare=True),
        more_open=any(name in wrong | changed for group in GROUPS if group.rare for name in group.members),
        new=not version,
        client_id=at.form.get("client_id", ""),
        reason=at.form.get(REASON, ""),
        back=back,
        notes=at.notes,
        errors=at.errors,
    )


def _without_private_keys(form: dict[str, str]) -> dict[str, str]:
    """The form as it may be stored and sent back (RFC 7517 §9.3)."""
    public = public_part(form.get("jwks", ""))
    return form if public is None else {**form, "jwks": public}


def fields_of(given: Mapping[str, str], *, rare: bool) -> tuple[Fields, ...]:
    """The common or the rare groups, with these values."""
    return tuple(
        Fields(
            legend=group.legend,
            fields=tuple(
                _field(_FIELDS[name], words, given.get(name, ""), rare=rare) for name, words in group.members.items()
            ),
        )
        for group in GROUPS
        if group.rare == rare
    )


def _field(each: Declared, words: Words, value: str, *, rare: bool) -> Field:
    kind = "text"
    if each.listed or each.form == "key set":
        kind = "lines"
    elif each.form in {"flag", "day", "number"}:
        kind = each.form
    elif each.form == "word":
        kind = "words"
    none = (("", phrase("Not set")),) if each.empties or each.default is None else ()
    return Field(
        name=each.name,
        label=words.label,
        hint=words.hint,
        kind=kind,
        value=value,
        words=(*none, *((word, word) for word in each.values)),
        optional=each.empties and not rare,
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
    no_identifier = [] if client_id else [("client_id", phrase("Enter the identifier of the client."))]
    actor = _checked(at, no_identifier)
    members = {name: value or None for name, value in _given(at, dict.fromkeys(_FIELDS, "")).items()}
    members = {name: None if value == NOTHING else value for name, value in members.items()}
    provider = at.context.provider
    try:
        await flow.add_client(
            provider.registry, provider.passwords, client_id, members, actor=actor, rules=at.web.client_rules
        )
    except Refused as refused:
        raise _invalid(refused) from None
    return Saved("client-added", here(client_id))


async def change(at: ConsoleContext) -> Saved:
    """Change the client as the form says. Raises Rejected, Invalid, Instead, Gone."""
    found, provider = await this_client(at), at.context.provider
    if not is_current(at, found):
        raise _changed_meanwhile(at, found)
    actor = _checked(at, [])
    members = _given(at, _values(found))
    if all(value is None for value in members.values()):
        raise Rejected(NOTHING_DIFFERENT)
    try:
        await flow.update_client(
            provider.registry, provider.passwords, found.client_id, members,
            actor=actor, rules=at.web.client_rules, was=found,
        )  # fmt: skip
    except Conflict:
        raise _changed_meanwhile(at, found) from None
    except Refused as refused:
        raise _invalid(refused) from None
    provider.registry_cache.drop()
    return Saved("client-changed", here(found.client_id))


def _changed_meanwhile(at: ConsoleContext, found: Client) -> Instead:
    heading = phrase("Somebody else has changed this client")
    return changed_meanwhile(at, heading, section=CLIENTS, back=client_path(at, found.client_id))


def _checked(at: ConsoleContext, errors: list[FieldError]) -> Operating:
    """The operator with the reason, if the form can be read.

    `errors` are those found before. Raises Invalid.
    """
    typed = {name: at.form.get(name, "").strip() for name in _FIELDS}
    errors = [*errors, *_wrong(typed, developer_mode=at.web.client_rules.developer_mode)]
    try:
        actor = acting(at)
    except Rejected as rejected:
        raise Invalid(*errors, (REASON, rejected.sentence)) from None
    if errors:
        raise Invalid(*errors)
    return actor


def _wrong(typed: Mapping[str, str], *, developer_mode: bool) -> list[FieldError]:
    """The errors that need words for people (D27, D38)."""
    errors: list[FieldError] = []
    if not typed["name"]:
        errors.append(("name", phrase("Enter the name that people see.")))
    uris = typed["redirect_uris"].split()
    if not uris:
        errors.append(("redirect_uris", phrase("Enter at least one redirect URI.")))
    for name, url in [("redirect_uris", uri) for uri in uris] + [("jwks_uri", typed["jwks_uri"])]:
        if url.startswith("http://") and not developer_mode:
            errors.append((name, phrase("{url} begins with http://. Use https://.", url=shown(url))))
        elif "#" in url:
            text = phrase("{url} has a fragment. Remove the # and everything after it.", url=shown(url))
            errors.append((name, text))
    if typed["jwks"] and typed["jwks_uri"]:
        errors.append(("jwks_uri", phrase("Fill in the address of the key set or the key set itself, not both.")))
    elif not typed["jwks"] and not typed["jwks_uri"]:
        errors.append(("jwks_uri", phrase("Enter the address of the client's key set, or paste the key set below.")))
    if public_part(typed["jwks"]) is not None:
        errors.append(("jwks", PRIVATE_KEY))
    return errors


PRIVATE_KEY: Final = phrase(
    "This was a private key, which only the client may have. Only its public part is left here: check it and send the "
    "form again. If anybody else has seen the private key, the client needs a new one."
)


def _invalid(refused: Refused) -> Invalid:
    """The faults, each at its field.

    The sentences are the registration's own.
    """
    faults = refused.faults if isinstance(refused, MembersRefused) else (reason_of(refused),)
    errors = []
    for fault in faults:
        name, colon, text = fault.partition(": ")
        is_member = bool(colon) and name in _FIELDS
        said = _capitalised(text if is_member else fault)
        errors.append((name if is_member else "", phrase("{sentence}.", sentence=said)))
    return Invalid(*errors)


def _capitalised(text: str) -> str:
    """A sentence with a capital letter, except before a name or address."""
    first = text.partition(" ")[0]
    return sentence(text) if first.isalpha() and first not in _NAMES else text


_NAMES: Final = frozenset({*SCOPES, *GENERATIONS, *CLIENT_MEMBERS})

SECTION: Final = Section[ConsoleContext](
    pages={
        _NEW_CLIENT: Page(view=new, submit=add, fresh=True, kept=_without_private_keys, needs=("write", "client")),
    },
    named_pages={
        re.compile(r"edit-client/[^/]{1,300}"): Page(
            view=edit, submit=change, fresh=True, kept=_without_private_keys, needs=("write", "client")
        )
    },
    fields=frozenset({"client_id", REASON, *_FIELDS}),
)
