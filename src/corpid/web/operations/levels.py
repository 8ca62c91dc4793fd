"""Rights of operators by level, from the table of access (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from corpid.rules.directory.access import (
    ANOTHERS_REQUEST,
    CONDITIONS,
    NO_OPERATOR,
    OBJECT_KINDS,
    RULES,
    SOMEBODY_ELSE,
    Action,
    Condition,
    ObjectKind,
)
from corpid.rules.directory.records import Operator, OperatorLevel
from corpid.rules.fields import fields_of
from corpid.texts import Phrase, phrase
from corpid.web.operations.page_context import ConsoleContext, ConsolePage
from corpid.web.pages.components import Cell, Value, View, table
from corpid.web.sites import Section

if TYPE_CHECKING:
    from collections.abc import Mapping


LEVELS: Final = "levels"
_LEVELS: Final[tuple[OperatorLevel, ...]] = get_args(OperatorLevel)
KINDS: Final[Mapping[ObjectKind, Phrase]] = {
    "user": phrase("People"),
    "credentials": phrase("Passwords and second steps"),
    "session": phrase("Sessions"),
    "lock": phrase("Pauses after wrong codes"),
    "link": phrase("Links to set up sign-in"),
    "password link": phrase("Links for a new password"),
    "second factor link": phrase("Links for a new second step"),
    "identity number": phrase("Identity numbers"),
    "consent": phrase("Consents"),
    "deletion request": phrase("Requests for deletion"),
    "entity": phrase("Organisations"),
    "membership": phrase("Members of organisations"),
    "administrator": phrase("Administrators of organisations"),
    "invitation": phrase("Invitations by organisations"),
    "assignment": phrase("Roles"),
    "grant": phrase("Third parties"),
    "third-party row": phrase("Roles of third parties"),
    "approval": phrase("Requests for approval"),
    "withdrawal": phrase("Withdrawals of requests"),
    "access review": phrase("Access reviews"),
    "access request": phrase("Requests for access"),
    "provisioning token": phrase("Provisioning tokens"),
    "service": phrase("Services"),
    "client": phrase("Clients"),
    "API client": phrase("Clients of the admin API"),
    "key": phrase("Signing keys"),
    "deployment": phrase("Overview and maintenance"),
    "operator": phrase("Operators"),
    "audit": phrase("Audit"),
    "audit export": phrase("Exports of the audit"),
    "audit verification": phrase("Verification of the audit"),
}
_ACTIONS: Final[Mapping[Action, Phrase]] = {
    "read": phrase("read"),
    "write": phrase("change"),
    "delete": phrase("remove"),
}
_ONLY: Final[Mapping[str, Phrase]] = {
    NO_OPERATOR.description: phrase("not of operators"),
    SOMEBODY_ELSE.description: phrase("not their own"),
    ANOTHERS_REQUEST.description: phrase("not their own"),
}
"""conditions that are not those of every change"""


async def show_levels(at: ConsoleContext) -> View:
    """The table of levels, kinds of record and rights."""
    levels = fields_of(Operator)["level"].choices
    return at.build_page(
        phrase("What each level may do"),
        phrase("Each change needs a reason, and a sign-in at most 15 minutes old."),
        table(
            phrase("Rights by level"),
            (phrase("Records"), *(levels[each] for each in _LEVELS)),
            (
                (KINDS[kind], *(_rights(level, kind) for level in _LEVELS))
                for kind in KINDS
                if kind in OBJECT_KINDS and any((level, "read", kind) in RULES for level in _LEVELS)
            ),
        ),
    )


def _rights(level: OperatorLevel, kind: ObjectKind) -> Value:
    found: list[Phrase] = []
    only: list[Condition] = []
    for action, text in _ACTIONS.items():
        conditions = RULES.get((level, action, kind))
        if conditions is not None:
            found.append(text)
            only += conditions
    notes = dict.fromkeys(_ONLY[each.description] for each in CONDITIONS if each in only and each.description in _ONLY)
    return Cell(values=(phrase("{rights}", rights=tuple(found)),), notes=tuple(notes)) if found else None


SECTION: Final = Section[ConsoleContext](name="people", pages={LEVELS: ConsolePage(view=show_levels)})
