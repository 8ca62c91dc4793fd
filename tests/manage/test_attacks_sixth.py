"""Attacks, sixth part: user names chosen before their owner comes, names that fold alike, pages of operators (D68)."""

from __future__ import annotations

from itertools import count

import pytest
from msgspec.structs import replace

from corpid.flows.directory.acceptance import accept_with_account, accept_with_new_account
from corpid.flows.directory.apply import ApplyResult, apply_document
from corpid.flows.directory.approvals import StaleRequest, approve_request
from corpid.flows.directory.imports import import_members, import_people
from corpid.flows.directory.members import find_member
from corpid.flows.directory.write import IdentifierConflict, write_changes
from corpid.rules.directory.access import CommandLine, DirectoryFile
from corpid.rules.directory.differences import OTHER_PERSON, remarks
from corpid.rules.directory.memberships import MemberQuery, placeholder
from corpid.rules.directory.names import label_identity
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.records import Administrator, Change, Membership, Operator, User
from corpid_dev.relying_party.browser import DeadEndError
from tests.console.scene import WITHOUT_PASSKEY, in_console
from tests.console.scene import go as go_to
from tests.enrolment import invited as harbour
from tests.manage.scene import ACME, BANYAN, in_portal, portal
from tests.manage.test_attacks_on_names import EVIL, free
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_who_is_meant import INVITED, member, owner, provisioned
from tests.postbox import Postbox
from tests.sign_in.world import World, entity, new_world

ROOT = CommandLine(by="root@host")
LEVELS = f"""
administrators: [{{user: nora.ng, entity: {ACME}, level: owner}}]
operators: [{{user: nora.ng, level: operator}}]
"""


async def squatted(made: World, name: str = "Mallory") -> None:
    """Whoever reads Mallory's mailbox is invited by Banyan, and calls the new account nora.ng."""
    await free(made)
    invited = replace(INVITED, user_id="f9", entity_id=BANYAN, membership_id="m-9", email=EVIL)
    await made.write(entity(BANYAN, "Banyan Trading"), placeholder(invited), invited)
    registry = made.provider.registry
    [there] = (await registry.directory.read(Membership, [invited.key])).values()
    await accept_with_new_account(
        registry, there, "id-mallory", user_name="nora.ng", name=name, language="", now=made.clock()
    )


async def apply(made: World, users: str, *, take_over: bool = False) -> ApplyResult:
    content, numbers = f"users: {{nora.ng: {users}}}{LEVELS}".encode(), count()
    return await apply_document(
        made.provider.registry, made.provider.passwords, content, file="hr.yaml", take_over=take_over,
        actor=DirectoryFile.from_content("hr.yaml", content, by=ROOT),
        new_user_id=lambda: f"00000000-0000-4000-8000-{next(numbers):012}",
    )  # fmt: skip


async def rights(made: World) -> list[type]:
    """What Mallory is for Acme and for the deployment."""
    directory, key = made.provider.registry.directory, ("id-mallory", ACME)
    kinds = {Membership: key, Administrator: key, Operator: key[:1]}
    return [kind for kind, each in kinds.items() if await directory.read(kind, [each])]


@pytest.mark.parametrize("take_over", [False, True])
@pytest.mark.parametrize("described", ["name: Nora Ng, email: nora@acme.example", "name: Mallory", f"email: {EVIL}.sg"])
async def test_a_file_gives_nothing_to_whoever_chose_the_user_name_before(
    made: World, described: str, take_over: bool
) -> None:
    """D65, D68: every nightly file says so again, and takes over nothing."""
    await squatted(made)
    for _ in range(2):
        result = await apply(made, f"{{{described}, memberships: [{ACME}]}}", take_over=take_over)
        assert not result.differences
        said = [each.reason for each in remarks(result.kept)]
        assert said[0] == f"user nora.ng is not changed: {OTHER_PERSON}"
        assert f"administrator: nora.ng at {ACME} is not added: {OTHER_PERSON}" in said
        assert len(said) == 4
    assert await rights(made) == []
    [user] = (await made.provider.registry.directory.read(User, [("id-mallory",)])).values()
    assert (user.name, user.email) == ("Mallory", EVIL)


@pytest.mark.parametrize("described", [f"name: Somebody, email: {EVIL}, ", f"email: {EVIL.title()}, "])
async def test_a_file_that_means_the_account_gives_it_everything(made: World, described: str) -> None:
    """D65, D68: by its address, in any case."""
    await squatted(made)
    await apply(made, f"{{{described}memberships: [{ACME}]}}")
    assert await rights(made) == [Membership, Administrator, Operator]


async def test_whom_a_file_has_meant_before_it_means_still(made: World) -> None:
    """D65: the person has changed their address since."""
    await squatted(made)
    await apply(made, f"{{email: {EVIL}, memberships: [{ACME}]}}")
    registry = made.provider.registry
    [user] = (await registry.directory.read(User, [("id-mallory",)])).values()
    await made.write(replace(user, email="m@elsewhere.example"))
    level = Change(Administrator(user_id="id-mallory", entity_id=ACME, level="owner"), None)
    await write_changes(registry, ROOT, [level], planned=True)
    await apply(made, f"{{email: {EVIL}, memberships: [{ACME}]}}", take_over=True)
    assert await rights(made) == [Membership, Administrator, Operator]


async def test_a_table_adds_nobody_who_chose_the_user_name_before(made: World) -> None:
    """D68: nothing is written; with the address of the account the person is meant."""
    await squatted(made, "Nora Ng")

    async def imported(address: str) -> None:
        await import_people(
            made.provider.registry, made.provider.passwords, f"user_name,name,email\nnora.ng,Nora Ng,{address}".encode(),
            file="people.csv", entity_id=ACME, actor=ROOT, new_user_id=made.provider.new_id, report=lambda *_: None,
        )  # fmt: skip

    with pytest.raises(DirectoryError) as refused:
        await imported("nora@acme.example")
    assert [each.reason for each in refused.value.problems] == [f"nora.ng: {OTHER_PERSON}"]
    assert await rights(made) == []
    await imported(EVIL)
    assert await rights(made) == [Membership]


async def test_a_pasted_line_means_nobody_with_another_address(made: World) -> None:
    """D68: Mallory, who joined Acme as nora.ng, is taken for Nora, whom the line describes, too."""
    await squatted(made)
    await made.write(Membership(user_id="id-mallory", entity_id=ACME, membership_id="m-mallory", name="Nora Ng"))
    browser = await in_portal(made, "access/import")
    line = "user_name,name,email,service,role\nnora.ng,Nora Ng,{},PERMITS,Maker"
    await browser.fill_and_submit("table", table=line.format("nora@acme.example"))
    assert "nora.ng (Nora Ng) has another e-mail address here" in browser.page.text
    await browser.fill_and_submit("table", table=line.format(EVIL.upper()))
    assert "nora.ng (Nora Ng) may act as Maker" in browser.page.text


async def test_a_table_of_invitations_skips_nobody_with_another_address(made: World) -> None:
    """D68: the operator would take the members of Acme for complete, and give the next role to Mallory."""
    await squatted(made)
    await made.write(Membership(user_id="id-mallory", entity_id=ACME, membership_id="m-mallory", name="Nora Ng"))

    async def imported(address: str) -> None:
        await import_members(
            made.provider.registry, f"user_name,name,email\nnora.ng,Nora Ng,{address}".encode(), file="people.csv",
            entity_id=ACME, send=True, actor=ROOT, now=made.clock(), new_id=made.provider.new_id, report=lambda *_: None,
        )  # fmt: skip

    with pytest.raises(DirectoryError, match="another e-mail address here"):
        await imported("nora@acme.example")
    await imported(EVIL)  # who is there is skipped


# --- names that look or fold alike


@pytest.mark.parametrize(
    "user_name",
    [
        "\ua4d0\ua4f3\ua4d0",
        "\u2c83\u2c9f\u2c83",
        "\u0570\u0585\u057d\u0578",
        "\uabaf\uabbb\uab71",
        "\U000104d8\U000104db",
    ],
)
async def test_letters_of_rare_scripts_that_look_like_latin_name_nobody(made: World, user_name: str) -> None:
    """D51, D68: Lisu, Coptic, Armenian, Cherokee, Osage."""
    assert await harbour.chosen(made, user_name, email=EVIL) == harbour.PROFILE


@pytest.mark.parametrize("user_name", ["-", "..", "_"])
async def test_nobody_is_called_by_symbols_alone(made: World, user_name: str) -> None:
    """D68: tables have a dash where there is nobody."""
    assert await harbour.chosen(made, user_name, email=EVIL, name="-") == harbour.PROFILE


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\u239bBob\u239e", "-Bob-"),  # large brackets
        ("Bob \u27f6 Ann", "Bob - Ann"),
        ("\u2800", "-"),  # a blank
        ("Bob\u20dd", "Bob-"),  # a circle around what is before it
        ("Ann+Bob", "Ann+Bob"),
        ("Zoë O\u2019Neil \u738b", "Zoë O\u2019Neil \u738b"),
    ],
)
def test_a_name_beside_an_identity_draws_no_brackets_and_no_arrows(name: str, shown: str) -> None:
    """D68: whatever symbol looks like one."""
    assert label_identity("cora", name) == f"cora ({shown})"


@pytest.mark.parametrize("user_name", ["نورا", "정민", "ทดสอบ", "ராணி", "майя", "αλέξης", "bjørn"])
async def test_names_in_scripts_of_wide_use_are_chosen_as_ever(made: World, user_name: str) -> None:
    """D51."""
    assert await harbour.chosen(made, user_name, email=EVIL) == harbour.FIRST


async def served(made: World, name: str) -> list[str]:
    """Who is found by a filter of SCIM for a userName."""
    query = MemberQuery(entity_id=ACME, conditions=(("user_name", "eq", name),), limit=9)
    return [each.name for each in (await made.provider.registry.provisioning.members(query))[1]]


@pytest.mark.parametrize(("written", "account"), [("\u24d1ob", "bob"), ("gro\u00df", "gross")])
async def test_a_written_user_name_folds_to_the_account_of_no_other_member(
    made: World, written: str, account: str
) -> None:
    """D68, RFC 7643 §2.2: a filter for the account would find two, and whoever types it be refused."""
    await free(made)
    if account != "bob":
        await made.person(account, entity(ACME, "Acme Pte. Ltd."), name="Gerda Gross")
    with pytest.raises(IdentifierConflict):
        await provisioned(made, await member(made, "id-cora"), user_name=written)
    assert len(await served(made, account)) == 1


async def test_whoever_joins_clears_a_name_that_only_searches_read_as_theirs(made: World) -> None:
    """D68: no account can be called ⓕinn."""
    await free(made)
    await provisioned(made, await member(made, "id-cora"), user_name="\u24d5inn")
    registry = made.provider.registry
    await made.write(User(user_id="id-finn", user_name="finn", name="Finn Goh"))
    [finn] = (await registry.directory.read(User, [("id-finn",)])).values()
    await accept_with_account(registry, await member(made, "f1e2"), finn, now=made.clock())
    assert (await member(made, "id-cora")).user_name == ""
    found = await find_member(registry, ACME, "finn")
    assert found is not None
    assert found.user.user_id == "id-finn"


async def test_a_request_says_for_whom_it_was_made_once_somebody_accepted(made: World) -> None:
    """D68: a difference at the decision is shown; approved it would be for nobody."""
    await acme(made)
    await made.write(placeholder(INVITED), INVITED)
    found = await requested(made, Change(None, replace(ROLE, user_id=INVITED.user_id)))
    registry = made.provider.registry
    await accept_with_new_account(
        registry, await member(made, INVITED.user_id), "id-mallory",
        user_name="mallory", name="Mallory", language="", now=made.clock(),
    )  # fmt: skip
    browser = await in_portal(made, "requests")
    assert "Give access to (invited) gina@acme.example (Gina Teo): Maker" in browser.page.text
    await browser.open(portal(made, f"requests/decide/{found.request_id}"), site="same-origin")
    assert "Names have changed since this was requested." in browser.page.text
    assert "gina@acme.example (Gina Teo) (removed person)" in browser.page.text
    assert "accepts the invitation" not in browser.page.text
    assert "the invitation was accepted, or somebody has left: make a new request" in browser.page.text
    with pytest.raises(DeadEndError):
        await browser.fill_and_submit(button="approve", reason="She starts on Monday")
    with pytest.raises(StaleRequest):
        await approve_request(registry, found.request_id, actor=owner(made, "alice"), reason="", now=made.clock())


# --- what is shown of a name


async def test_a_newcomers_user_name_is_kept_in_small_letters(made: World) -> None:
    """D51, D68: wherever a name is shown as it is stored, aIice is not read as alice."""
    await harbour.invite(made, email=EVIL, name="Mallory")
    await harbour.enrolled(made, await harbour.at_profile(made), user_name="aIice", name="Mallory")
    user = await made.provider.registry.directory.user_by_name("aiice")
    assert user is not None
    assert user.user_name == "aiice"


async def test_an_operator_knows_nobody_by_a_capital_letter() -> None:
    """D51, D68: aIice is read as alice, in the list of people, in the audit and in what a search finds."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await free(made)
        await made.person("aIice", entity(ACME, "Acme Pte. Ltd."), name="Alice Tan")
        change = Change(None, replace(ROLE, user_id="id-aIice"))
        await write_changes(made.provider.registry, owner(made, "alice"), [change])
        browser = await in_console(made, "operator", "people")
        for page in ("people", "people/id-aIice", "audit", f"entities/{ACME}"):
            await go_to(made, browser, page)
            assert "aiice" in browser.page.text, page
            assert "aIice" not in browser.page.text, page


async def test_the_file_of_the_history_knows_nobody_who_left_by_a_capital_letter(made: World) -> None:
    """D68: the column of the user name is the one that is searched."""
    await free(made)
    await made.person("aIice", entity(ACME, "Acme Pte. Ltd."), name="Alice Tan")
    gone = Change(await member(made, "id-aIice"), None)
    await write_changes(made.provider.registry, owner(made, "alice"), [gone])
    browser = await in_portal(made, "history/export")
    assert browser.response is not None
    assert ",aiice," in browser.response.text
    assert "aIice" not in browser.response.text


@pytest.mark.parametrize("mail", [False, True])
async def test_the_page_of_the_code_promises_no_help_that_takes_an_email_without_mail(mail: bool) -> None:
    """D69: without mail an administrator can neither unlock nor send a link."""
    async with new_world(**({"postbox": Postbox()} if mail else {})) as made:
        browser = await made.browser()
        made.clock.pass_(60)
        await browser.open(portal(made), site="none")
        await made.password(browser, made.people["alice"])
        assert ("ask your organisation's" in browser.page.text) is mail
        assert "ask the operator of CorpID" in browser.page.text
