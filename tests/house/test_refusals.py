"""The refusals of flows that a form can provoke are phrases, which pages say in the reader's language."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import corpid.flows
from corpid.flows.directory.write import Refused
from corpid.rules.directory import access as conditions
from corpid.rules.directory.access import Forbidden
from corpid.texts import Phrase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

FOLDERS: Final = ("directory", "operations")
MADE: Final = frozenset({"phrase", "counted"})
WORDED: Final = frozenset({
    "access_review.sign_off_review NoOpenReview",
    "access_review.sign_off_review ReviewIncomplete", "access_review._check_as_shown AccessChanged",
    "write.check_reason NoReason", "approvals.approve_request StaleRequest", "approvals._decide_request AlreadyDecided",
    "approvals.comment_on_request AlreadyDecided", "approvals.comment_on_request Refused",

    "approvals._require_write NoRequest", "approvals._find_readable NoRequest", "approvals.load_request NoRequest",
})  # fmt: skip
"""types for which each page has a sentence of its own, or which it shows as a page that is not there"""
RULES: Final = frozenset({
    "write.check_changes Refused", "apply.prepare_entry InvalidMembers",
    "provisioning.add_token Refused", "people._hash_password Refused",
})  # fmt: skip
"""lists of what the rules of records say, in the English of files and API; pages check beforehand what a form can get
wrong"""
NO_FORM: Final = frozenset({
    "access_review.list_reviewed_people Refused", "clients.add_api_client Refused",
    "clients._read_fields Refused", "clients._check_registration Refused",
    "clients.find_client Refused", "clients.drop_keys Refused", "apply.prepare_addition Refused",
    "single_records.find_record Refused", "single_records.update_record Refused",
    "lists.find_user Refused", "lists._find_identified Refused", "lists.pick_one Refused",
    "lists.list_records Refused", "lists.list_records UnknownSort", "lists.find_order Refused",
    "lists.find_order UnknownSort",
    "people.invite_user Refused", "people.give_link Refused", "provisioning.change_group Refused",
    "members.query_members Refused", "objects.list_objects Refused", "provisioning.remove_token Refused", "write.require_reason Refused",
    "audit.identify_person Refused", "audit.erase_person Refused", "erasure.identify_person Refused",
    "erasure._remove Refused", "signing_keys.request_certificate Refused", "signing_keys.certify Refused",
    "signing_keys.remove_certificate Refused", "signing_keys.plan Refused", "signing_keys._find_key Refused",
    "signing_keys._find_usable_key Refused",
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
    assert len(found) > 90


def test_the_reasons_of_access_rules_are_phrases() -> None:
    """D53: what is left names a scope, to a program."""
    plain = {each.reason for each in conditions.CONDITIONS if not isinstance(each.reason, Phrase)}
    assert all(reason.startswith("the token lacks the scope ") for reason in plain)
