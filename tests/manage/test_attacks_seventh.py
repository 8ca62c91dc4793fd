"""Attacks, seventh part: user names without an entry of their own, and what the sixth left (D65, D68, D69)."""

from __future__ import annotations

from itertools import count

import pytest
from msgspec.structs import replace

from corpid.flows.account.enrolment_steps import RESERVED_NAMES
from corpid.flows.authentication.own_pages import RECOVERY_PATH
from corpid.flows.directory import access_review
from corpid.flows.directory.access_review import KeepDecision
from corpid.flows.directory.apply import ApplyResult, apply_document
from corpid.flows.directory.write import write_changes
from corpid.flows.operations import history
from corpid.rules.directory.access import ApiClient, DirectoryFile
from corpid.rules.directory.differences import OTHER_PERSON, remarks
from corpid.rules.directory.records import Administrator, Assignment, Change, Membership
from corpid.web.pages.translations import LANGUAGES, translator
from tests.enrolment import invited as harbour
from tests.enrolment import newcomer
from tests.manage.scene import ACME
from tests.manage.test_attacks_on_names import EVIL, free
from tests.manage.test_attacks_second import shown_in_review
from tests.manage.test_attacks_sixth import LEVELS, ROOT, rights, squatted
from tests.manage.test_requests import ROLE
from tests.manage.test_who_is_meant import owner
from tests.postbox import Postbox
from tests.sign_in.world import World, entity, new_world


async def apply(made: World, text: str, *, take_over: bool = False, prune: bool = False) -> ApplyResult:
    content, numbers = text.encode(), count()
    return await apply_document(
        made.provider.registry, made.provider.passwords, content, file="levels.yaml", take_over=take_over, prune=prune,
        actor=DirectoryFile.from_content("levels.yaml", content, by=ROOT),
        new_user_id=lambda: f"00000000-0000-4000-8000-{next(numbers):012}",
    )  # fmt: skip


async def joined(made: World) -> None:
    """Mallory, who is called nora.ng, belongs to Acme."""
    await squatted(made)
    await made.write(Membership(user_id="id-mallory", entity_id=ACME, membership_id="m-mallory", name="Nora Ng"))


@pytest.mark.parametrize(
    "text",
    [
        LEVELS,
        f"users: {{nora.ng: {{memberships: [{ACME}]}}}}{LEVELS}",
        f"assignments: [{{user: nora.ng, entity: {ACME}, service: PERMITS, role: Maker}}]",
    ],
)
@pytest.mark.parametrize("take_over", [False, True])
async def test_a_file_without_an_address_gives_nothing_to_whoever_chose_the_user_name(
    made: World, text: str, take_over: bool
) -> None:
    """D65, D68: the person is described in another file, or nowhere."""
    await joined(made)
    result = await apply(made, text, take_over=take_over)
    assert not result.differences
    assert {each.reason.partition(": whoever")[2] for each in remarks(result.kept)} == {OTHER_PERSON[len("whoever") :]}
    assert await rights(made) == [Membership]


async def test_a_file_raises_nobody_who_chose_the_user_name(made: World) -> None:
    """D65, D68: a level that somebody else gave is taken over, and made a higher one."""
    await joined(made)
    held = Administrator(user_id="id-mallory", entity_id=ACME, level="sub_administrator")
    await made.write(held)
    for take_over in (False, True):
        result = await apply(
            made, f"administrators: [{{user: nora.ng, entity: {ACME}, level: owner}}]", take_over=take_over
        )
        assert not result.differences
    assert await made.provider.registry.directory.read(Administrator, [held.key]) == {held.key: held}


async def test_a_file_sets_no_factor_of_whoever_chose_the_user_name(made: World) -> None:
    """D44, D68: the password that was meant for Nora opens nothing of Mallory's."""
    await joined(made)
    result = await apply(made, f"users: {{nora.ng: {{email: nora@acme.example, totp_secret: {'A' * 32}}}}}")
    assert not result.differences


async def test_a_file_that_means_the_account_gives_levels(made: World) -> None:
    """D65, D68: the address is enough, and once it has been, the next file needs none."""
    await joined(made)
    await apply(
        made,
        f"users: {{nora.ng: {{email: {EVIL}}}}}\nadministrators: [{{user: nora.ng, entity: {ACME}, level: administrator}}]",
    )
    assert await rights(made) == [Membership, Administrator]
    await apply(made, f"administrators: [{{user: nora.ng, entity: {ACME}, level: owner}}]")
    [(_, held)] = (await made.provider.registry.directory.read(Administrator, [("id-mallory", ACME)])).items()
    assert held.level == "owner"


@pytest.mark.parametrize("take_over", [False, True])
async def test_pruning_takes_nothing_from_whoever_chose_the_user_name(made: World, take_over: bool) -> None:
    """D65, D68: they are not the person whose memberships the file lists."""
    await joined(made)
    text = (
        f"users: {{alice: {{}}, bob: {{}}, cora: {{}}, nora.ng: {{email: nora@acme.example, memberships: [{ACME}]}}}}"
    )
    result = await apply(made, text, take_over=take_over, prune=True)
    assert not [each.subject for each in result.differences if "nora.ng" in each.subject]


async def test_what_an_entitys_own_client_gave_says_nothing_about_whom_an_operators_document_means(made: World) -> None:
    """D59, D68: hostile Acme gives Mallory what the operator plans for Nora, who would be given everything else."""
    await joined(made)
    registry = made.provider.registry
    role = Assignment(user_id="id-mallory", entity_id=ACME, service_id="PERMITS", role="Maker")
    bound = ApiClient(client_id="acme", scopes=frozenset({"directory.write"}), entity_id=ACME)
    await write_changes(registry, bound, [Change(None, role)], planned=True)
    result = await apply_document(
        registry, made.provider.passwords,
        f"assignments: [{{user: nora.ng, entity: {ACME}, service: PERMITS, role: Maker}}]\n"
        f"administrators: [{{user: nora.ng, entity: {ACME}, level: administrator}}]".encode(),
        file="API", actor=ApiClient(client_id="operator", scopes=frozenset({"directory.write"})), new_user_id=str,
    )  # fmt: skip
    assert not result.differences
    assert await rights(made) == [Membership]


# --- what the sixth part left


@pytest.mark.parametrize("user_name", ["you", "You", "system", "operator", "anda", "您"])
async def test_nobody_is_called_by_a_word_that_stands_where_names_do(made: World, user_name: str) -> None:
    """D68: "Given by you", and "Requested by: You", are said of the reader."""
    assert await harbour.chosen(made, user_name, email=EVIL) == harbour.PROFILE


@pytest.mark.parametrize("user_name", ["a\u4e28ice", "bob\u4e8c", "\u3112om", "\u4e28", "\u4e00", "\u30fc"])
async def test_no_letter_of_another_script_stands_among_those_of_latin(made: World, user_name: str) -> None:
    """D51, D68: 丨 is read as l, and what looks like a dash alone as nobody."""
    assert await harbour.chosen(made, user_name, email=EVIL) == harbour.PROFILE


@pytest.mark.parametrize("user_name", ["5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10", "5B0B6D0E-21A4-4C55-8A19-3C2E6F7B9A10"])
async def test_nobody_is_called_by_the_identifier_of_another_account(made: World, user_name: str) -> None:
    """D57, D68: commands and API read it as the identifier: whoever types the user name means somebody else."""
    assert await harbour.chosen(made, user_name, email=EVIL) == harbour.PROFILE


@pytest.mark.parametrize("user_name", ["佐々木", "カーター", "山田たろう", "王小明", "nguyễn.2", "김정민"])
async def test_names_with_signs_of_repetition_and_length_are_chosen(made: World, user_name: str) -> None:
    """D51."""
    assert await harbour.chosen(made, user_name, email=EVIL) == harbour.FIRST


def test_the_word_for_the_reader_is_kept_in_every_language() -> None:
    """D68: the list has what the catalogues say."""
    said = {translator(each).gettext("You").casefold() for each in LANGUAGES}
    assert said <= RESERVED_NAMES


async def test_who_has_only_codes_by_email_is_promised_no_link_for_a_password() -> None:
    """D69: the link goes to the same address, so that they prove nothing."""
    async with new_world(postbox=Postbox()) as made:
        browser = await made.browser()
        await browser.open(f"{made.base}{RECOVERY_PATH}", site="none")
    assert "a new password if you still have a passkey, an authenticator app or a recovery code" in browser.page.text


# --- who gave it, and who is named


async def test_a_role_whose_parts_have_slashes_has_no_giver_of_another_role(made: World) -> None:
    """D57, D68: the audit names both by one text, and the last change of the other is Bob's."""
    await free(made)
    registry = made.provider.registry
    first = replace(ROLE, sub_entity="a/b")
    second = replace(ROLE, sub_entity="a", ref="b/")
    assert "/".join(first.key) == "/".join(second.key)
    for who, role in (("alice", first), ("bob", second)):
        change = Change(None, role)
        await write_changes(registry, owner(made, who), [change], planned=True)
    found = await history.load_grants(registry, owner(made), [first, second])
    assert {key: entry.actor for key, entry in found.entries.items()} == {second.key: "user:id-bob"}
    plain = await history.load_grants(registry, owner(made), [second])
    assert list(plain.entries) == [second.key]


async def test_who_is_not_reviewed_yet_is_named_by_what_identifies_them(made: World) -> None:
    """D68: of somebody invited that is the address, not the name of a placeholder."""
    await free(made)
    await made.person("aIice", entity(ACME, "Acme Pte. Ltd."), name="Alice Tan")
    registry = made.provider.registry
    seen = await shown_in_review(made, "bob")
    mine = [KeepDecision(user_id="id-cora", seen=seen["id-cora"])]
    await access_review.keep_access(registry, owner(made), ACME, mine, now=made.clock())
    with pytest.raises(access_review.ReviewIncomplete) as refused:
        await access_review.sign_off_review(registry, owner(made), ACME, now=made.clock())
    assert "gina@acme.example (Gina Teo)" in str(refused.value)
    assert "aiice (Alice Tan)" in str(refused.value)


@pytest.mark.parametrize("sent", [False, True])
async def test_no_account_gets_an_address_that_its_link_has_not_proven(made: World, sent: bool) -> None:
    """D60, D65, D68: held; the address is what a file knows people by, so an accomplice redirects the invitation."""
    await harbour.invite(made, email=EVIL, name="Mallory")
    browser = await harbour.at_profile(made)
    await harbour.named(browser, user_name="nora.ng", name="Nora Ng")
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    invited = (await harbour.of(made)).membership
    await made.write(replace(invited, email="nora@acme.example"))
    if sent:
        await harbour.Sender(made=made).round()
        assert (await harbour.of(made)).membership.email == "nora@acme.example"
    heading = await newcomer.kept(browser)
    assert heading != harbour.ACCEPTED
    assert await made.provider.registry.directory.user_by_name("nora.ng") is None
