"""An identifier in any form of the portal that is not one of this organisation: nothing is shown, nothing written (D54, D61)."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from corpid.flows.directory.provisioning import add_token
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.directory.access import EntityAdministrator
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.records import Change, Membership, ThirdPartyAssignment
from corpid.web.directory.access import box
from tests.manage.access_scene import checker
from tests.manage.scene import BANYAN, appoint, go, send
from tests.manage.test_levels import FILLED, addresses, forms, scene
from tests.manage.test_requests import ROLE
from tests.manage.test_third_parties import GRANT
from tests.manage.walking import token
from tests.sign_in.world import World, entity, form_of

ZIRCON: Final = "200000009Z"
NOBODY: Final = "00000000-0000-4000-8000-000000000999"
FORMS: Final[dict[str, tuple[str, dict[str, str], str, dict[str, str]]]] = {
    "people": ("people", {"select-{sam}": "yes", "button": "Suspend"}, "sam", {"decision": "suspend"}),
    "access": ("access", {"select-{assignment}": "yes", "button": "Remove access"}, "assignment", {}),
    "access/new": ("access/new?person={sam}&access=PERMITS/Maker&start=today&end=none&check=all", {}, "sam", {}),
    "access/copy": ("access/copy?person={sam}&from={marcus}", {}, "sam", {box(checker(), "2026-01-01"): "yes", "confirmed": "yes"}),
    "third-parties/assign": ("third-parties/assign/{received}?person={sam}", {}, "sam", {"confirmed": "yes"}),
}  # fmt: skip
"""a form that names people in fields → its page, what leads to the last step, whom that names, and what it needs"""


async def others(made: World) -> dict[str, str]:
    """One of everything at Zircon, which Zoe owns and Acme has nothing to do with."""
    zircon = entity(ZIRCON, "Zircon", approvals="roles")
    await made.person("zoe", zircon, name="Zoe Berg")
    await made.person("zack", zircon, name="Zack Berg")
    await appoint(made, ZIRCON, who="zoe")
    role = replace(checker("zack"), entity_id=ZIRCON)
    grant = replace(GRANT, client_entity_id=ZIRCON)
    received = replace(GRANT, client_entity_id=BANYAN, entity_id=ZIRCON)
    offered = replace(received, role="Other", state="offered")
    row = ThirdPartyAssignment(
        user_id="id-zack", entity_id=ZIRCON, client_entity_id=BANYAN, service_id="PERMITS", role="Maker",
        start_date="2026-01-01", end_date="2099-12-31",
    )  # fmt: skip
    await made.write(role, grant, received, offered, row)
    registry, now = made.provider.registry, made.clock()
    zoe = EntityAdministrator(
        user_id="id-zoe", entity_id=ZIRCON, level="owner", services=(), alone=False, auth_time=now, now=now
    )
    made_token = await add_token(
        registry, ZIRCON, "HR", days=9, token="t" * 43, token_id=NOBODY.replace("999", "998"), actor=zoe, now=now
    )
    wanted = Change(None, replace(ROLE, user_id="id-zack", entity_id=ZIRCON))
    asked = await write_changes(registry, zoe, [wanted], asking=RequestDetails("r", now, "other"))
    assert asked is not None
    keys = [(f"id-{name}", ZIRCON) for name in ("zoe", "zack")]
    held = await registry.directory.read(Membership, keys)
    return {
        "olga": held[keys[0]].membership_id, "marcus": held[keys[1]].membership_id, "assignment": object_id(role.key),
        "grant": object_id(grant.key), "offer": object_id(offered.key), "received": object_id(received.key),
        "row": object_id(row.key), "token": made_token.token_id, "decide": asked.request_id,
        "withdraw": asked.request_id,
    }  # fmt: skip


def missing(objects: dict[str, str]) -> dict[str, str]:
    """Identifiers of the same form that nothing has."""
    role = object_id(replace(checker("nobody"), service_id="NONE").key)
    grant, row = (
        object_id(replace(each, client_entity_id="NONE").key)
        for each in (
            GRANT,
            ThirdPartyAssignment(user_id="x", entity_id="y", client_entity_id="z", service_id="s", role="r"),
        )
    )
    of = {"assignment": role, "grant": grant, "offer": grant, "received": grant, "row": row}
    return {name: of.get(name, "0-x" if name in {"decide", "withdraw"} else NOBODY) for name in objects}


async def written(made: World) -> int:
    return len(await made.provider.registry.audit.entries(limit=10_000))


@pytest.mark.parametrize("forged", ["of another organisation", "of nothing", "of a person"])
async def test_no_form_takes_an_identifier_in_its_address_that_is_not_of_this_organisation(
    made: World, forged: str
) -> None:
    """D54, D61: the same answer for what others have and for what there is not."""
    browser, own = await scene(made, "owner")
    objects = await others(made)
    if forged == "of nothing":
        objects = missing(objects)
    form, before, tried = {**token(browser), **FILLED}, await written(made), 0
    for path, pattern, _ in forms():
        if pattern is None:
            continue
        named = {"marcus": "id-marcus"} if forged == "of a person" and path.startswith("person/") else objects
        if forged == "of a person" and named is objects:
            continue
        for address in addresses(path, pattern, named):
            assert (await send(made, browser, address, **form)).status_code == 404, address
            tried += 1
    assert tried > (5 if forged == "of a person" else 25)
    assert await written(made) == before
    assert own


@pytest.mark.parametrize("name", FORMS)
async def test_no_form_takes_a_person_in_a_field_who_is_not_of_this_organisation(made: World, name: str) -> None:
    """D54, D61: another's member, nobody, a person instead of a membership, or a text; the same form works as it is."""
    browser, own = await scene(made, "owner")
    there = await others(made)
    page, steps, whom, more = FORMS[name]
    await go(made, browser, page.format(**own))
    if steps:
        await browser.fill_and_submit(**{field.format(**own): value for field, value in steps.items()})
    form = {**form_of(browser, "form_token"), "reason": "She asked", **more}
    address = urlsplit(browser.url).path.removeprefix("/manage/")
    mine, before = own[whom], await written(made)
    assert any(mine in text for pair in form.items() for text in pair)
    for forged in (there["marcus"], there["assignment"], NOBODY, "id-marcus", "../m", "\u202e", "1' OR '1'='1"):
        changed = {field.replace(mine, forged): value.replace(mine, forged) for field, value in form.items()}
        await send(made, browser, address, **changed)
        assert await written(made) == before, forged
    await send(made, browser, address, **form)
    assert await written(made) > before
