"""What is declared once: refusals and audit actions, with the documents that are made from them."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from typing import TYPE_CHECKING, get_args

from corpid.flows.directory.write import ACTIONS, SWITCHES
from corpid.rules.audit import AuditAction
from corpid.rules.oauth import errors
from corpid.rules.oauth.errors import OAuthError
from corpid.rules.oauth.refusals import Acts, ErrorCode, Reason
from scripts import tables
from scripts.reference import errors as error_reference
from tests.house.source import ROOT, Module, listed, modules, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator


CLASSES = {
    name: each
    for name, each in vars(errors).items()
    if inspect.isclass(each) and issubclass(each, OAuthError) and each is not OAuthError
}
DECLARING = {"rules/oauth/refusals.py", "rules/audit.py"}
ERRORS_PAGE = ROOT / "docs" / "reference" / "errors.md"
RECORDS_WITH_AN_ACTION = "rules/directory/records.py"


@cache
def members_named(enumeration: str) -> set[str]:
    """The members of an enumeration that the code names outside its declaration."""
    return {
        node.attr
        for module in modules()
        if module.path not in DECLARING
        for node in nodes(module.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == enumeration
    }


def refusals_made(module: Module) -> Iterator[tuple[ast.Call, str, list[str]]]:
    """Each call of an error's class, with the members of Reason that its first argument can be."""
    for node in nodes(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES:
            first = node.args[0] if node.args else None
            reasons = [
                each.attr
                for each in (ast.walk(first) if first is not None else ())
                if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "Reason"
            ]
            yield node, node.func.id, reasons


def test_the_documents_are_as_the_declarations_have_them() -> None:
    """`make tables` writes them."""
    stale = [
        path.name
        for path, made in tables.PAGES.items()
        if tables.written(path.read_text(encoding="utf-8"), made()) != path.read_text(encoding="utf-8")
    ]
    assert not stale, f"{stale}: run `make tables`"


def test_every_declared_reason_is_one_that_the_code_refuses_with() -> None:
    """docs/architecture.md, "One declaration": the catalogue has nothing that cannot happen."""
    unused = [reason.name for reason in Reason if reason.name not in members_named("Reason")]
    assert not unused, listed(unused)


def test_every_error_that_is_raised_with_a_reason_is_one_that_the_reason_declares() -> None:
    """The type of an error's first argument says that there is a reason; this, that it is one of that error."""
    wrong = [
        f"{module.at(call)} {name} with {reason}"
        for module in modules()
        for call, name, reasons in refusals_made(module)
        for reason in reasons
        if CLASSES[name].code not in Reason[reason].value.errors
    ]
    assert not wrong, listed(wrong)


def test_every_error_code_is_declared_of_a_reason_and_has_a_class() -> None:
    """`misdirected_request` is no OAuth error: the middleware answers before any endpoint."""
    declared = {error for reason in Reason for error in reason.value.errors}
    assert declared == set(get_args(ErrorCode))
    assert {each.code for each in CLASSES.values()} == declared - {"misdirected_request"}


def test_every_refusal_says_cause_and_mending_in_sentences() -> None:
    silent = [
        reason.name
        for reason in Reason
        for sentence in (reason.value.cause, reason.value.remedy)
        if not sentence.endswith(".") or len(sentence) < 10
    ]
    assert not silent, listed(silent)
    assert {reason.value.acts for reason in Reason} == set(Acts)


def test_every_reason_has_one_anchor_with_who_must_act_and_how_to_fix_it() -> None:
    """docs/reference/errors.md#REASON, which log, console and developer mode link to (D28)."""
    text = ERRORS_PAGE.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    anchors = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    parts = dict(part.split("\n", 1) for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:])
    for reason in Reason:
        assert anchors.count(reason.code) == 1, reason.code
        acts = f"*{reason.value.acts[:1].upper()}{reason.value.acts[1:]}*: {reason.value.remedy}"
        assert acts in parts[reason.code] and reason.value.cause in parts[reason.code], reason.code
    assert {f"error-{error}" for error in get_args(ErrorCode)} <= set(anchors)


def test_the_reference_says_every_status_of_an_error_and_its_cause() -> None:
    """D5, D47: a subclass has a status of its own; only 429 is for too many requests."""
    for error in CLASSES.values():
        said = error_reference.statuses(error.code)
        assert "status" not in vars(error) or str(error.status) in said, error
        assert (
            ("429 for too many requests" in said)
            == ("too many requests" in said)
            == (error.code == "temporarily_unavailable")
        )


def test_every_audit_action_is_one_that_the_code_writes() -> None:
    """The closed list of D57: those of records follow from kind and verb, every other one is named where it is written."""
    derived = {*ACTIONS.values(), *(action for switch in SWITCHES.values() for action in switch)}
    named = members_named("AuditAction")
    unused = [action.value for action in AuditAction if action not in derived and action.name not in named]
    assert not unused, listed(unused)


def test_no_audit_action_is_written_out_where_an_event_is_made() -> None:
    """Whoever makes an event takes its action from the enumeration; the stored value stands there alone."""
    values = {action.value for action in AuditAction}
    written_out = [
        f"{module.at(node)} {node.value}"
        for module in modules()
        if module.path not in DECLARING
        for node in nodes(module.tree)
        if isinstance(node, ast.Constant) and node.value in values
    ]
    assert not written_out, listed(written_out)


def test_every_page_lists_the_same_statuses_of_a_wrong_http_request() -> None:
    """Spec 7; 429 and 503 are no mistakes of a request."""
    chapter = (ROOT / "docs" / "specification" / "errors.md").read_text(encoding="utf-8")
    listed_there = chapter.partition("Mistakes in the HTTP request itself")[2].partition("A `Content-Type`")[0]
    row = next(line for line in ERRORS_PAGE.read_text(encoding="utf-8").splitlines() if "| anything else (" in line)
    listed_here = row.partition(")")[0]
    declared = set(error_reference.OF_THE_HTTP_REQUEST)
    assert {int(each) for each in re.findall(r"\b[45]\d\d\b", listed_there)} == declared
    assert {int(each) for each in re.findall(r"\b[45]\d\d\b", listed_here)} == declared | {429, 503}
