"""The refusals of flows that a form can provoke are phrases, which pages say in the reader's language."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import corpid.flows
from corpid.flows.directory.write import Refused
from corpid.rules.directory import access_conditions as conditions
from corpid.rules.directory.access import Forbidden
from corpid.texts import Phrase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

FOLDERS: Final = ("directory", "operations")
MADE: Final = frozenset({"phrase", "counted"})
WORDED: Final = frozenset({
    "access_review.end NoReason", "access_review.sign_off NoOpenReview", "access_review.sign_off ReviewIncomplete",
    "access_review._check_as_shown AccessChanged", "approvals.check_reason NoReason", "approvals.approve StaleRequest",
    "approvals._after AlreadyDecided", "approvals.withdraw NoRequest", "approvals._request NoRequest",
    "request_lists.request NoRequest",
})  # fmt: skip
"""types for which each page has a sentence of its own, or which it shows as a page that is not there"""
RULES: Final = frozenset({
    "access_requests.ask Refused", "appointments.appoint Refused", "approvals.approve Refused",
    "entities.prepared_entry MembersRefused", "import_access.submit Refused", "role_assignment._refuse_unfit Refused",
    "provisioning_tokens.add_token Refused", "people._hashed Refused",
})  # fmt: skip
"""lists of what the rules of records say, in the English of files and API; pages check beforehand what a form can get
wrong"""
NO_FORM: Final = frozenset({
    "access_review.people Refused", "api_clients.add_api_client Refused", "api_clients.update_api_client Refused",
    "api_clients.drop_api_client_keys Refused", "api_clients._fields Refused", "api_clients._registered Refused",
    "appointments.remove_administrator Refused", "clients.client Refused", "clients.update_client Refused",
    "clients.drop_keys Refused", "entities.addition Refused", "entities.update_entity Refused", "finding.user_named Refused",
    "finding._identified Refused", "finding.only_one Refused", "lists.people_by_name Refused",
    "lists.people_by_email Refused", "lists._before Refused", "lists.entities_by_name Refused",
    "lists.entities_by_number Refused", "lists._named Refused", "lists.place Refused", "lists._name Refused",
    "memberships._held Refused", "operators.remove_operator Refused", "people.invite Refused",
    "people.give_link Refused", "provisioned_groups.change_group Refused", "provisioning.members Refused",
    "provisioning_tokens.remove_token Refused", "write.with_reason Refused", "audit.identify_person Refused",
    "audit.erase_person Refused", "erasure.identify_person Refused", "erasure._remove Refused",
    "signing_keys.request_certificate Refused", "signing_keys.certify Refused", "signing_keys.remove_certificate Refused",
    "signing_keys.plan Refused", "signing_keys._find_key Refused", "signing_keys._find_usable_key Refused",
    "audit_seals.rotate_audit_key Refused", "audit_seals._sealing_key Refused",
})  # fmt: skip
"""of commands, API and SCIM, or of something that a page looks for first and shows as not there"""


def _is_phrase(module: ModuleType, text: ast.expr) -> bool:
    match text:
        case ast.Call(func=ast.Name(id=name)):
            return name in MADE
        case ast.IfExp(body=one, orelse=other):
            return _is_phrase(module, one) and _is_phrase(module, other)
        case ast.Name(id=name):
            return isinstance(getattr(module, name, None), Phrase)
    return False


def _refusals() -> Iterator[tuple[str, bool]]:
    """Where a flow refuses, with the type, and whether its text is a phrase."""
    for folder in FOLDERS:
        for file in sorted((Path(corpid.flows.__file__).parent / folder).glob("*.py")):
            module = import_module(f"corpid.flows.{folder}.{file.stem}")
            for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield from _of(module, file.stem, function)


def _of(module: ModuleType, stem: str, function: ast.AST) -> Iterator[tuple[str, bool]]:
    for each in ast.walk(function):
        match each:
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=[*texts])):
                kind = getattr(module, name, None)
                if isinstance(kind, type) and issubclass(kind, Refused):
                    yield f"{stem}.{function.name} {name}", _is_phrase(module, texts[0])  # type: ignore[attr-defined]
                elif kind is Forbidden and len(texts) > 3:
                    yield f"{stem}.{function.name} {name}", _is_phrase(module, texts[3])  # type: ignore[attr-defined]


def test_a_refusal_is_a_phrase_unless_no_form_provokes_it_or_a_page_words_it() -> None:
    """docs/accessibility.md: a new refusal is translated, or stands in one of the lists above for a reason."""
    found = list(_refusals())
    english = {where for where, translated in found if not translated}
    assert english == WORDED | RULES | NO_FORM
    assert len(found) > 100


def test_the_reasons_of_access_rules_are_phrases() -> None:
    """D53: what is left names a scope, to a program."""
    plain = {each.reason for each in conditions.CONDITIONS if not isinstance(each.reason, Phrase)}
    assert all(reason.startswith("the token lacks the scope ") for reason in plain)
