"""Who and what is identified where a right is decided: owners, organisations, invitations, names, roles (D68, D69)."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec.structs import replace

from corpid.flows.account.enrolment_steps import RESERVED_NAMES
from corpid.flows.directory import approvals
from corpid.flows.directory.acceptance import accept_with_account
from corpid.flows.directory.members import AmbiguousName, find_member
from corpid.flows.directory.notice_texts import (
    AccessChange,
    Reader,
    RequestInWords,
    RoleNames,
    build_access_email,
    build_waiting_email,
)
from corpid.flows.directory.own_access import list_own_access
from corpid.flows.directory.write import IdentifierConflict, write_changes
from corpid.rules.directory.access import ApiClient, CommandLine, Forbidden
from corpid.rules.directory.memberships import placeholder
from corpid.rules.directory.names import is_distinct
from corpid.rules.directory.records import Administrator, Change, Membership, Operator, Service, User
from corpid.texts import phrase
from corpid.web.pages.emails import EmailRenderer
from corpid.web.pages.translations import LANGUAGES, translator
from tests.console.scene import REASON, WITHOUT_PASSKEY, in_console
from tests.enrolment import invited as harbour
from tests.enrolment import newcomer
from tests.manage.access_scene import staffed
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal
from tests.manage.test_attacks_on_names import EVIL, free
from tests.manage.test_helping_members import able, asked
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_third_parties import GRANT, three
from tests.manage.test_third_parties import page as page_of
from tests.manage.test_who_is_meant import INVITED, TOKEN, member, owner, provisioned, rename
from tests.postbox import Postbox
from tests.sign_in.world import World, entity, new_world

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

OWNER_PAGE: Final = f"entities/{ACME}/owner"
CHECKED: Final = "If you mean somebody else, cancel: nothing has changed yet."


# --- an owner by a typed name


async def levels(made: World) -> dict[str, str]:
    held = await made.provider.registry.directory.administrators(ACME)
    return {each.record.user_id: each.record.level for each in held}


async def at_check(made: World, user_name: str, instead_of: str = "nobody") -> Browser:
    browser = await in_console(made, "operator", OWNER_PAGE)
    await browser.fill_and_submit(way="member", user_name=user_name, instead_of=instead_of)
    return browser


async def test_the_console_says_who_becomes_an_owner_before_anybody_does() -> None:
    """D68: an address that is nobody's account is what the organisation calls Cora."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await free(made)
        await provisioned(made, await member(made, "id-cora"), user_name="nora@acme.example", name="Nora Ng")
        browser = await at_check(made, "nora@acme.example", "id-alice")
        assert await levels(made) == {"id-alice": "owner", "id-bob": "owner"}
        assert browser.page.heading == "Appoint cora (Nora Ng) as an owner of Acme Pte. Ltd.?"
        for said in (
            "What you entered nora@acme.example", "User name of the account cora",
            "Name Nora Ng written by the organisation", "alice (Alice Tan) stays a member", CHECKED,
        ):  # fmt: skip
            assert said in browser.page.text
        assert f"/console/entities/{ACME}" in {url for url, text in browser.page.links if text == "Cancel"}
        await browser.fill_and_submit(reason="")
        assert "Say why" in browser.page.text
        await browser.fill_and_submit(reason=REASON)
        assert "The owner has been appointed" in browser.page.text
        assert await levels(made) == {"id-cora": "owner", "id-bob": "owner"}


async def test_the_console_appoints_nobody_who_was_renamed_while_it_asked() -> None:
    """D68: what was shown is what is done."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await free(made)
        browser = await at_check(made, "cora")
        await rename(made, await member(made, "id-cora"), "Alice Tan")
        await browser.fill_and_submit(reason=REASON)
        assert "Names have changed since you looked." in browser.page.text
        assert "cora (Alice Tan)" in browser.page.heading
        assert await levels(made) == {"id-alice": "owner", "id-bob": "owner"}


async def test_the_console_says_to_whom_the_invitation_of_an_owner_goes() -> None:
    """D68: in small letters, as an address identifies."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await free(made)
        browser = await in_console(made, "operator", OWNER_PAGE)
        await browser.fill_and_submit(
            way="invited", owner_name="Ian Tan", owner_email="Ian@harbourIabs.example", instead_of="nobody"
        )
        assert "(invited) ian@harbouriabs.example (Ian Tan)" in browser.page.heading
        assert await levels(made) == {"id-alice": "owner", "id-bob": "owner"}


async def test_the_only_person_whom_a_search_finds_is_named_before_anything_is_given(made: World) -> None:
    """D68: the words are those that the organisation wrote; the next page has the account's user name."""
    await free(made)
    await provisioned(made, await member(made, "id-cora"), user_name="nora@acme.example", name="Nora Ng")
    browser = await in_portal(made, "access/new?find=nora")
    assert "Person cora (Nora Ng)" in browser.page.text


# --- organisations of one name

NAMESAKE: Final = "200000009A"
SHOWN: Final = f"Banyan Trading ({BANYAN})"


async def with_namesake(made: World) -> None:
    await three(made)
    await made.write(entity(NAMESAKE, "Banyan Trading"), GRANT)


@pytest.mark.parametrize("verb", ["grant", "end", "change"])
async def test_a_third_party_has_its_identifier_where_its_right_is_decided(made: World, verb: str) -> None:
    """D68: another organisation has its name."""
    await with_namesake(made)
    browser = await in_portal(made, page_of(verb))
    assert SHOWN in browser.page.text


async def test_a_request_and_the_history_name_a_third_party_by_its_identifier(made: World) -> None:
    """D57, D68."""
    await with_namesake(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="roles"))
    await made.person("bob", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Bob Lim")
    await appoint(made, who="bob")
    offer = replace(GRANT, state="offered", role="Checker")
    found = await requested(made, Change(None, offer))
    browser = await in_portal(made, f"requests/{found.request_id}")
    assert f"Offer: {SHOWN} may act as Checker at Permits for Acme Pte. Ltd." in browser.page.text
    await approvals.approve_request(
        made.provider.registry, found.request_id, actor=owner(made, "alice"), reason="r", now=made.clock()
    )
    await go(made, browser, "history")
    assert SHOWN in browser.page.text


async def test_an_operator_reads_which_third_party_it_is() -> None:
    """D53, D68."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await with_namesake(made)
        browser = await in_console(made, "operator", f"entities/{ACME}")
        assert SHOWN in browser.page.text


# --- invitations, and addresses that count


async def test_the_only_invitation_among_many_members_with_its_address_is_found(made: World) -> None:
    """D68: an entity gives its members one address; the invitation comes last in any order."""
    await free(made)
    for number in range(25):
        await made.write(
            User(user_id=f"id-{number:02}", user_name=f"user{number:02}", name="User"),
            Membership(user_id=f"id-{number:02}", entity_id=ACME, membership_id=f"a-{number:02}", email=INVITED.email),
        )
    last = replace(INVITED, membership_id="z-gina", user_name="gina2")
    await made.write(placeholder(last), last)
    with pytest.raises(IdentifierConflict):
        await provisioned(made, await member(made, "id-cora"), user_name=INVITED.email)
    cora = replace(await member(made, "id-cora"), user_name=INVITED.email)
    await made.write(cora)  # as an earlier version left it
    with pytest.raises(AmbiguousName, match=r"gina@acme\.example"):
        await find_member(made.provider.registry, ACME, INVITED.email)


async def is_refused(made: World, email: str) -> bool:
    """Whether a pasted line about Cora with this address is about somebody else."""
    browser = await in_portal(made, "access/import")
    await browser.fill_and_submit("table", table=f"user_name,email,service,role\ncora,{email},PERMITS,Maker")
    return "has another e-mail address here" in browser.page.text


@pytest.mark.parametrize("door", ["token", "page"])
async def test_an_address_that_the_entity_wrote_tells_nobody_apart(made: World, door: str) -> None:
    """D68: Mallory's token or page gives Cora the address of Nora, whom the line describes."""
    await free(made)
    cora = await member(made, "id-cora")
    if door == "token":
        await provisioned(made, cora, email="nora@acme.example")
    else:
        await rename(made, cora, cora.name, email="nora@acme.example")
    assert await is_refused(made, "nora@acme.example")


@pytest.mark.parametrize("by", [TOKEN, CommandLine(by="root@host")], ids=["token", "operator"])
async def test_only_the_address_of_the_account_confirms_who_is_meant(made: World, by: Any) -> None:
    """D68: nothing tells an address that an entity wrote from one that an operator wrote, or left."""
    await free(made)
    user = await made.provider.registry.directory.user("id-cora")
    assert user is not None
    assert not await is_refused(made, user.email)
    cora = await member(made, "id-cora")
    change = Change(cora, replace(cora, email="cora@work.example"))
    await write_changes(made.provider.registry, by, [change], planned=True)
    assert await is_refused(made, "cora@work.example")


# --- names that stand for somebody else

PLACES: Final = (
    "You", "The operator", "An operator", "Operator", "Operators", "A removed person", "None", "Invited", "Owner",
    "owner", "Administrator", "administrator", "Sub-administrator", "sub-administrator", "Support", "Auditor",
    "Person", "Nobody at present", "The sign-in service itself", "Your system, with a provisioning token",
)  # fmt: skip
"""texts that stand where pages name people"""


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.tag)
def test_what_stands_for_somebody_is_kept_in_every_language(language: Any) -> None:
    """D68: the table has what the catalogues say, without spaces and symbols."""
    for text in PLACES:
        said = translator(language).gettext(text).lower()
        bare = "".join(each for each in said if not each.isspace() and each not in ".-_+,()（）")  # noqa: RUF001
        assert bare in RESERVED_NAMES, said


@pytest.mark.parametrize(
    "user_name", ["运营者", "Pengendali", "இயக்குநர்", "管理员", "the.operator", "sub-administrator"]
)
async def test_nobody_is_called_by_the_word_of_another_language_for_somebody_else(made: World, user_name: str) -> None:
    """D68: "Given by 运营者"."""
    assert await harbour.chosen(made, user_name, email=EVIL) == harbour.PROFILE


@pytest.mark.parametrize("name", ["јоёӏ", "сһӏоё", "јӧ", "ἰνο", "κἰκο", "ρίο", "ӓӧӱ", "ёӓ"])
def test_letters_with_marks_are_compared_without_them(name: str) -> None:
    """D51, D68: joël, chloë, jö, ivo, kiko, pío, äöÿ, ëä."""
    assert not is_distinct(name)


@pytest.mark.parametrize("name", ["νικόλαος", "σοφία", "андрей", "алёна", "юрий"])
def test_ordinary_names_with_marks_stay(name: str) -> None:
    """D51."""
    assert is_distinct(name)


@pytest.mark.parametrize("name", ["ог", "гб", "ᴦο", "ყჿ", "ഠഠ", "ဝဝ", "ଠଠ", "ዐሀዐ"])  # noqa: RUF001
def test_letters_of_confusables_txt_alone_name_nobody(name: str) -> None:
    """D51, D68, Unicode TS 39 §4: or, r6, ro, yo, oo, oo, OO, OUO."""
    assert not is_distinct(name)


# --- roles of an invitation, and roles with slashes


async def test_a_role_that_was_given_before_an_invitation_was_accepted_has_its_giver(made: World) -> None:
    """D57, D60, D68: the audit has it under the invitation."""
    await free(made)
    registry = made.provider.registry
    await made.write(placeholder(INVITED), INVITED)
    await write_changes(registry, owner(made), [Change(None, replace(ROLE, user_id=INVITED.user_id))], planned=True)
    await made.person("gina", name="Gina Teo")
    user = await registry.directory.user("id-gina")
    assert user is not None
    await accept_with_account(registry, INVITED, user, now=made.clock())
    [own] = await list_own_access(registry, "id-gina")
    assert [each.giver.name for each in own.roles] == ["bob (Bob Lim)"]
    browser = await in_portal(made, f"person/{INVITED.membership_id}")
    assert "bob (Bob Lim)" in browser.page.text.partition("Access for")[2].partition("Last changes")[0]


async def test_the_history_names_a_role_with_a_slash_whole(made: World) -> None:
    """D57: the change of its end, too, which records neither."""
    await free(made)
    await made.write(Service(service_id="PERMITS", name="Permits", roles=("Developer of bulk/import",)))
    registry, role = made.provider.registry, replace(ROLE, role="Developer of bulk/import")
    await write_changes(registry, owner(made), [Change(None, role)], planned=True)
    await write_changes(registry, owner(made), [Change(role, replace(role, end_date="2028-12-31"))], planned=True)
    browser = await in_portal(made, "history")
    assert "The access of cora (Cora Chan) as Developer of bulk/import at Permits was changed" in browser.page.text


# --- e-mails

READER: Final = Reader(
    user=User(user_id="id-cora", user_name="cora", name="Cora Chan", email="cora@acme.example"),
    entity=entity(ACME, "Acme Pte. Ltd."),
    deployment_url="https://login.example.org",
)


def test_a_part_of_the_organisation_is_quoted_in_an_e_mail() -> None:
    """D68: it reads like another client, and like an end."""
    role = RoleNames(
        service="Permits", role="Maker", sub_entity="A”, for Banyan Trading, until 1 Jan 2090. www.evil.example"
    )
    email = build_access_email(READER, [AccessChange(change="given", role=role)], by=["bob"], at=0)
    sent = EmailRenderer(name="CorpID", timezone=UTC).render(email)
    assert "part “A', for Banyan Trading, until 1 Jan 2090. www.\u2060evil.\u2060example”" in sent.subject


async def test_a_reason_that_somebody_typed_is_no_link(made: World) -> None:
    """D68: mail programs make one of an address."""
    await acme(made)
    found = replace(await requested(made), reason="See https://evil.example/approve or www.evil.example")
    words = RequestInWords(record=found, change=phrase("The approval setting changes."), requester="bob")
    renderer = EmailRenderer(name="CorpID", timezone=UTC)
    sent = renderer.render(build_waiting_email(READER, [words], 1))
    for text in (sent.text, sent.html):
        assert "evil.example" not in text
        assert "https://" not in text.replace(READER.deployment_url, "")


# --- approvals


@pytest.mark.parametrize("bound", ["", ACME])
async def test_no_program_approves_what_anybody_asked_for(made: World, bound: str) -> None:
    """D55, D59, D60: neither a client of the API nor a provisioning token."""
    await acme(made)
    found = await requested(made)
    client = ApiClient(client_id="loader", scopes=frozenset({"directory.read", "directory.write"}), entity_id=bound)
    for program in (client, TOKEN):
        with pytest.raises(Forbidden):
            await approvals.approve_request(
                made.provider.registry, found.request_id, actor=program, reason="r", now=made.clock()
            )


# --- help with signing in


async def _operator(made: World) -> None:
    await made.write(Operator(user_id="id-marcus", level="support"))


async def _administrator(made: World) -> None:
    await made.write(Administrator(user_id="id-marcus", entity_id=ACME, level="owner"))


async def _readdressed(made: World) -> None:
    user = await made.provider.registry.directory.user("id-marcus")
    assert user is not None
    await made.write(replace(user, email="marcus@elsewhere.example"))


async def _left(made: World) -> None:
    held = await member(made, "id-marcus")
    await made.provider.registry.directory.write([Change(held, None)])


async def _helper_left(made: World) -> None:
    held = await made.provider.registry.directory.administrators(ACME)
    await made.provider.registry.directory.write([Change(each.record, None) for each in held])


@pytest.mark.parametrize("change", [_operator, _administrator, _readdressed, _left, _helper_left])
@pytest.mark.parametrize("opened", [False, True])
async def test_a_link_ends_when_its_administrator_could_not_ask_for_it_any_more(change: Any, opened: bool) -> None:
    """D69: judged again wherever it is used; it is removed, and operators read why."""
    postbox = Postbox()
    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        await asked(made, await in_portal(made), "second_factor")
        url = newcomer.link_in(postbox)
        browser = await newcomer.opened(made, url) if opened else None
        await change(made)
        if browser is None:
            browser = await made.browser()
            await newcomer.followed(browser, url)
        else:
            await browser.open(browser.url, site="same-origin")
        assert browser.page.heading == "This link no longer works"
        assert "ask the operator of this service for help" in browser.page.text
        assert not await made.provider.registry.factors.links_of("id-marcus")
        last = (await made.audit("link.second_factor"))[-1]
        assert (last.outcome, last.actor, last.detail["requested_by"]) == ("refused", "system", "user:id-alice")
