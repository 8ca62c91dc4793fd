"""Who becomes an owner in the console, and names that look like others: attacks on D68."""

from __future__ import annotations

import pytest

from corpid.flows.directory.members import end_member
from corpid.rules.directory.names import is_distinct
from corpid.rules.directory.records import Membership, User
from tests.console.scene import WITHOUT_PASSKEY, in_console
from tests.manage.scene import ACME
from tests.manage.test_attacks_on_names import free
from tests.manage.test_who_is_meant import TOKEN, member, provisioned
from tests.sign_in.world import World, new_world


async def owners(made: World) -> set[str]:
    return {each.record.user_id for each in await made.provider.registry.directory.administrators(ACME)}


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("instead_of", ["nobody", "id-alice"])
async def test_the_console_appoints_nobody_by_a_name_that_an_entity_gave_to_somebody_else(
    left: bool, instead_of: str
) -> None:
    """D68: nora.ng is the account of somebody else, who left or never belonged; a token calls Cora so."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await free(made)
        nora = User(user_id="id-nora", user_name="nora.ng", name="Nora Ng", email="nora@acme.example")
        await made.write(nora)
        if left:
            await made.write(Membership(user_id="id-nora", entity_id=ACME, membership_id="m-nora", name="Nora Ng"))
            await end_member(made.provider.registry, "m-nora", actor=TOKEN)
        await provisioned(made, await member(made, "id-cora"), user_name="nora.ng", name="Nora Ng")
        before = await owners(made)
        browser = await in_console(made, "operator", f"entities/{ACME}/owner")
        await browser.fill_and_submit(way="member", user_name="nora.ng", instead_of=instead_of)
        assert "can mean several people here" in browser.page.text
        assert await owners(made) == before


@pytest.mark.parametrize("name", ["ԁаѵіԁ", "еѵа", "оӏіѵіа", "ѕуӏѵіа", "хаѵі", "сүсӏо", "ϳοϳο", "յօհո"])  # noqa: RUF001
def test_a_name_of_another_script_that_reads_as_one_of_latin_is_chosen_by_nobody(name: str) -> None:
    """D51, D68: david, eva, olivia, sylvia, xavi, cyclo, jojo, john."""
    assert not is_distinct(name)


@pytest.mark.parametrize("name", ["владимир", "анна", "νικόλαος", "σοφία", "արամ", "佐々木"])
def test_an_ordinary_name_of_another_script_is_chosen(name: str) -> None:
    """D51: it has letters that Latin has not."""
    assert is_distinct(name)
