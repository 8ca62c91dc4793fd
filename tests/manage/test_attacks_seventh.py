"""Attacks, seventh part: user names without an entry of their own, and what the sixth left (D65, D68, D69)."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from corpid.flows.directory.apply import apply_document
from corpid.rules.directory.actors import DirectoryFile
from corpid.rules.directory.differences import OTHER_PERSON, remarks
from corpid.rules.directory.records import Administrator, Membership
from tests.manage.scene import ACME
from tests.manage.test_attacks_on_names import EVIL
from tests.manage.test_attacks_sixth import LEVELS, ROOT, rights, squatted

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
