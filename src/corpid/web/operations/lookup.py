"""Look-up by reference and search in the console (D82)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from corpid.flows.operations import lookup as flow
from corpid.rules.audit import AuditAction
from corpid.rules.directory.names import canonical
from corpid.rules.directory.words import find_reasons, words_of_search
from corpid.rules.limits import MINUTE
from corpid.rules.references import LOG_FIELD, REFERENCE, find_reference
from corpid.texts import Phrase, phrase
from corpid.web.operations.audit import ENTRY_COLUMNS, REFERENCE_PAGE, entry_rows
from corpid.web.operations.clients import CLIENT, client_path, describe_reason
from corpid.web.operations.page_context import (
    SEARCH,
    SEARCH_CHARACTERS,
    SEARCHED,
    ConsoleContext,
    ConsolePage,
)
from corpid.web.operations.people import state_of
from corpid.web.pages.components import (
    Cell,
    Code,
    Facts,
    Heading,
    Link,
    Paragraph,
    Part,
    Table,
    Value,
    View,
    count_found,
    enabled_label,
    table,
)
from corpid.web.sites import FormResult, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from corpid.flows.operations.lookup import ReferenceRecords, SearchGroup
    from corpid.rules.directory.records import Entity, Service, User
    from corpid.rules.oauth.records import Client
    from corpid.rules.oauth.refusals import ClientRefusal

_PASTED_CHARACTERS: Final = 4000
"""of a text in which a reference is looked for, such as a line of the log"""
_EACH: Final = 5
"""records of a kind on the page of a search"""


async def show_reference(at: ConsoleContext) -> View:
    """The page of a reference. Raises access.Forbidden."""
    found = await flow.look_up(at.registry, at.page.rpartition("/")[2], actor=at.actor, now=at.context.now)
    parts: list[Part] = []
    for refusal in found.refusals:
        parts += _refusal(at, refusal)
    if found.entries:
        parts += [
            Heading(phrase("In the audit")),
            Table(
                caption=phrase("Entries of this request"),
                columns=ENTRY_COLUMNS,
                rows=await entry_rows(at, found.entries),
            ),
        ]
    if not parts:
        parts += _nothing(at, found)
    return at.build_page(
        phrase("Reference {reference}", reference=found.reference),
        Facts(_facts(at, found)),
        *parts,
    )


def _facts(at: ConsoleContext, found: ReferenceRecords) -> tuple[tuple[Phrase, Value], ...]:
    came: Value = at.moment(found.at) if found.at else phrase("Unknown: an earlier version made this reference.")
    facts: list[tuple[Phrase, Value]] = [(phrase("Time of the request"), came)]
    ending = next((each for each in found.entries if each.action in flow.ENDINGS), None)
    if ending is not None:
        completed = ending.action == AuditAction.SIGN_IN_COMPLETE
        result = phrase("It was completed.") if completed else phrase("It was cancelled or refused.")
        facts.append((phrase("How the sign-in ended"), result))
    facts.append((phrase("In the log"), f"{LOG_FIELD}={found.reference}"))
    return tuple(facts)


def _refusal(at: ConsoleContext, refusal: ClientRefusal) -> list[Part]:
    reason, remedy = describe_reason(refusal.reason, refusal.detail)
    return [
        Heading(phrase("Why it was refused")),
        Facts(
            (
                (phrase("Client"), at.record_link(CLIENT, refusal.client_id, refusal.client_id)),
                (phrase("Request"), Code(f"{refusal.method} {refusal.path}")),
                (phrase("Reason"), reason),
                (phrase("What to do"), remedy),
            )
        ),
        Paragraph(phrase("The request named this client without proving that it is the client's."), look="hint")
        if refusal.claimed
        else None,
    ]


def _nothing(at: ConsoleContext, found: ReferenceRecords) -> list[Part]:
    """Advice for a request of which nothing is kept."""
    day = at.moment(found.at) if found.at else None
    return [
        Paragraph(phrase("Nothing that you may read is kept of this request. The log has it."), look="empty"),
        phrase("Search the log of {moment} for the field {field}.", moment=day, field=LOG_FIELD)
        if day
        else phrase("Search the log for the field {field}.", field=LOG_FIELD),
        Paragraph(phrase("What happened in the last minute may still be missing here. Reload the page."), look="hint")
        if at.context.now - found.at < MINUTE
        else None,
        table(
            phrase("Refusals in the hour of this request, of all clients"),
            (phrase("Reason"), phrase("What to do"), phrase("Count")),
            ((*describe_reason(each.reason), each.count) for each in found.counts),
        )
        if found.counts
        else None,
    ]


# --- search


async def submit_search(at: ConsoleContext) -> FormResult:
    """Lead to the records of a reference, or to what is found."""
    typed = at.form.get(SEARCH, "").strip()[:_PASTED_CHARACTERS]
    if reference := find_reference(typed):
        return FormResult("", f"{REFERENCE_PAGE}/{reference}")
    text = typed[:SEARCH_CHARACTERS]
    if not text:
        return FormResult("", SEARCH)
    return FormResult("", at.search_page(text))


async def show_search(at: ConsoleContext) -> View:
    """The page of a search. Raises access.Forbidden."""
    text = at.searched
    found = await flow.search(at.registry, text, actor=at.actor, limit=_EACH)
    parts: list[Part] = [part for each in found.groups for part in _group(at, each, text)]
    if found.keys:
        parts.append(
            table(
                phrase("Signing keys"),
                (phrase("Key"),),
                ((at.link("keys", each.kid),) for each in found.keys),
            )
        )
    if found.key_clients:
        parts.append(
            table(
                phrase("Clients with this key"),
                (phrase("Identifier"), phrase("Name")),
                (
                    (Link(url=client_path(at, each.client_id), text=each.client_id), each.name)
                    for each in found.key_clients
                ),
            )
        )
    if not parts:
        parts.append(
            Paragraph(
                phrase(
                    "Nothing found. Search for a name, a user name, an e-mail address, an identifier, a key "
                    "identifier or a reference."
                )
                if text
                else phrase("Enter what you search for in the field above."),
                look="empty",
            )
        )
    return at.build_page(
        phrase("Search: {text}", text=text) if text else phrase("Search"),
        *tuple(parts),
    )


def _group(at: ConsoleContext, group: SearchGroup, text: str) -> list[Part]:
    path, kind, headings, row = _KINDS[group.listed.kind]
    asked = words_of_search(text)
    found = table(count_found(kind, group.total), headings, (row(at, each, asked) for each in group.found))
    whole = group.total.exact and group.total.count <= len(group.found)
    return [found] if whole else [found, at.link(path, phrase("Show all"), str(kind), search=text)]


def _entity(at: ConsoleContext, each: Entity, asked: Sequence[str]) -> tuple[Value, ...]:
    why = find_reasons(asked, f"{each.name} {each.entity_id}", (each.registration_number,))
    link = at.record_link("entities", each.entity_id, each.name)
    return Cell(values=(link,), notes=why), each.entity_id, enabled_label(each.enabled)


def _person(at: ConsoleContext, each: User, asked: Sequence[str]) -> tuple[Value, ...]:
    why = find_reasons(asked, f"{each.name} {each.user_name}", (each.email,))
    link = at.record_link("people", each.user_id, each.name or canonical(each.user_name))
    return Cell(values=(link,), notes=why), canonical(each.user_name), state_of(each)


def _service(at: ConsoleContext, each: Service, _: Sequence[str]) -> tuple[Value, ...]:
    return at.record_link("services", each.service_id, each.name), each.service_id


def _client(at: ConsoleContext, each: Client, _: Sequence[str]) -> tuple[Value, ...]:
    return at.record_link(CLIENT, each.client_id, each.client_id), each.name, enabled_label(each.enabled)


_NAME, _IDENTIFIER, _STATE = phrase("Name"), phrase("Identifier"), phrase("State")
_KINDS: Final[
    Mapping[
        str, tuple[str, Phrase, tuple[Phrase, ...], Callable[[ConsoleContext, Any, Sequence[str]], tuple[Value, ...]]]
    ]
] = {
    "entity": ("entities", phrase("Organisations"), (_NAME, _IDENTIFIER, _STATE), _entity),
    "user": ("people", phrase("People"), (_NAME, phrase("User name"), _STATE), _person),
    "service": ("services", phrase("Services"), (_NAME, _IDENTIFIER), _service),
    "client": ("clients", phrase("Clients"), (_IDENTIFIER, _NAME, _STATE), _client),
}
"""kind of record → its list, its name, headings and row"""
REFERENCES: Final = Section[ConsoleContext](
    name="audit", named_pages={re.compile(f"{REFERENCE_PAGE}/{REFERENCE}"): ConsolePage(view=show_reference)}
)
SECTION: Final = Section[ConsoleContext](
    name=SEARCH,
    pages={SEARCH: ConsolePage(view=show_search, submit=submit_search)},
    fields=frozenset({SEARCH}),
    filters=frozenset({SEARCHED}),
)
