"""Attacks, seventh part: user names without an entry of their own, and what the sixth left (D65, D68, D69)."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from corpid.flows.account.enrolment_steps import PLACES_OF_NAMES
from corpid.flows.authentication.own_pages import RECOVERY_PATH
from corpid.flows.directory.apply import apply_document
from corpid.rules.directory.actors import DirectoryFile
from corpid.rules.directory.differences import OTHER_PERSON, remarks
from corpid.rules.directory.records import Administrator, Membership
from corpid.web.pages.translations import LANGUAGES, translator
from tests.enrolment import invited as harbour
from tests.manage.scene import ACME
from tests.manage.test_attacks_on_names import EVIL
from tests.manage.test_attacks_sixth import LEVELS, ROOT, rights, squatted
from tests.postbox import Postbox
from tests.sign_in.world import new_world

if TYPE_CHECKING:
    from corpid.flows.directory.apply import ApplyResult
    from tests.sign_in.world import World


async def apply(made: World, text: str, *, take_over: bool = False) -> ApplyResult:
    content, numbers = text.encode(), count()
    return await apply_document(
        made.provider.registry, made.provider.passwords, content, file="levels.yaml", take_over=take_over,
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


# --- what the sixth part left


@pytest.mark.parametrize("user_name", ["you", "You", "system", "operator", "anda", "您"])
async def test_nobody_is_called_by_a_word_that_stands_where_names_do(made: World, user_name: str) -> None:
    """D68: "Given by you", and "Requested by: You", are said of the reader."""
    await harbour.invite(made, email=EVIL, name="Mallory")
    browser = await harbour.at_profile(made)
    assert await harbour.named(browser, user_name=user_name, name="Mallory") == harbour.PROFILE


def test_the_word_for_the_reader_is_kept_in_every_language() -> None:
    """D68: the list has what the catalogues say."""
    said = {translator(each).gettext("You").casefold() for each in LANGUAGES}
    assert said <= PLACES_OF_NAMES


async def test_who_has_only_codes_by_email_is_promised_no_link_for_a_password() -> None:
    """D69: the link goes to the same address, so that they prove nothing."""
    async with new_world(postbox=Postbox()) as made:
        browser = await made.browser()
        await browser.open(f"{made.base}{RECOVERY_PATH}", site="none")
    assert "a new password if you still have a passkey, an authenticator app or a recovery code" in browser.page.text
