"""Every form of the portal and each level: what a level may not send it does not open, nor is it led there (D53)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, get_args
from urllib.parse import urljoin

import pytest
from msgspec.structs import replace

from corpid.rules.directory.access import CONDITIONS, RULES, Action, ObjectKind
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.records import (
    Administrator,
    AdministratorLevel,
    Change,
    Membership,
    Service,
    ThirdPartyAssignment,
)
from corpid.web.directory import endpoints
from tests.links import all_followed
from tests.manage.access_scene import HARBOUR, checker
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, portal, send
from tests.manage.test_requests import ROLE, requested
from tests.manage.test_third_parties import GRANT
from tests.manage.walking import token
from tests.sign_in.world import World, entity, form_of
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.web.directory.page_context import PortalPage
    from corpid_dev.relying_party.browser import Browser

SITE: Final = endpoints._SITE
LEVELS: Final = get_args(AdministratorLevel)
OPEN_TO_ALL: Final = {"organisation", "undo"}
"""one chooses for whom somebody acts, the other needs the rights of the change that it takes back"""
HIDDEN: Final[dict[str, tuple[Action, ObjectKind]]] = {
    "approvals-setting": ("write", "entity"),
    "new-password": ("write", "password link"),
    "new-second-step": ("write", "second factor link"),
    "unlock": ("delete", "lock"),
}
"""last part of the path of pages that are not there (404) for a level without this right"""
MORE: Final = {
    "third-parties/offer": f"third-parties/offer?to={BANYAN}&service=PERMITS",
    "access/copy": "access/copy?person={marcus}",
    "access/new": "access/new?person={marcus}&access=HARBOUR&start=today&end=none",
    "access-review": "access-review?begin=1",
}
"""path → the address at which its form is shown"""


FILLED: Final = {
    "reason": "She asked", "name": "Nadia Rahman", "email": "nadia@acme.example", "days": "90", "decision": "approve",
    "level": "sub_administrator", "service-HARBOUR": "on", "all_services": "", "role": "Maker", "start": "2026-01-01",
    "end": "2099-12-31", "approvals": "all", "button": "yes", "confirm": "yes", "people": "nadia@acme.example",
}  # fmt: skip
"""what any form may ask for"""
REASONS: Final = {
    *(str(each.reason) for each in CONDITIONS), "Only an owner can change", "You cannot change your own", "you do not have permission",
    "You do not have permission",
}  # fmt: skip
"""why a right is missing, as pages say it"""


class Scene(NamedTuple):
    browser: Browser
    objects: dict[str, str]
    """name of what there is → its part in a path"""


async def scene(made: World, level: AdministratorLevel) -> Scene:
    """Alice, whose level was lowered after a form was shown to her, at Acme with one of everything."""
    acme = entity(ACME, "Acme Pte. Ltd.", approvals="roles")
    permits = Service(service_id="PERMITS", name="Permits", roles=("Maker", "Other"), third_parties=True)
    await made.write(acme, entity(BANYAN, "Banyan Trading"), replace(HARBOUR, third_parties=True), permits)
    await appoint(made)
    for name, its in (("olga", "owner"), ("adam", "administrator"), ("sam", "sub_administrator")):
        await made.person(name, acme, name=f"{name.title()} Lim")
        await appoint(made, level=its, who=name)  # type: ignore[arg-type]
    await made.person("marcus", acme, name="Marcus Lee")
    await made.person("cora", acme, name="Cora Chan")
    received = replace(GRANT, client_entity_id=BANYAN, entity_id=ACME)
    row = ThirdPartyAssignment(
        user_id="id-marcus", entity_id=ACME, client_entity_id=BANYAN, service_id="PERMITS", role="Maker",
        start_date="2026-01-01", end_date="2099-12-31",
    )  # fmt: skip
    offered = replace(received, role="Other", state="offered")
    await made.write(checker(), GRANT, received, offered, row)
    others = await requested(made, who="olga")
    made.clock.pass_(1)
    wanted = replace(ROLE, user_id="id-marcus")
    own = await requested(made, Change(None, wanted), who="alice")
    browser = await in_portal(made, "tokens/new")
    await browser.fill_and_submit("name", name="HR", days="90")
    [made_token] = await made.provider.registry.provisioning.tokens(ACME)
    services = ("HARBOUR",) if level == "sub_administrator" else ()
    await made.write(Administrator(user_id="id-alice", entity_id=ACME, level=level, services=services))
    people = {}
    for name in ("alice", "olga", "adam", "sam", "marcus"):
        key = (f"id-{name}", ACME)
        people[name] = (await made.provider.registry.directory.read(Membership, [key]))[key].membership_id
    objects = {
        **people, "assignment": object_id(checker().key), "grant": object_id(GRANT.key), "offer": object_id(offered.key),
        "received": object_id(received.key), "row": object_id(row.key), "token": made_token.token_id,
        "decide": others.request_id, "withdraw": own.request_id,
    }  # fmt: skip
    return Scene(browser, objects)


def forms() -> Iterator[tuple[str, re.Pattern[str] | None, PortalPage]]:
    """Every page of the portal with a form."""
    for section in SITE.sections:
        for path, page in section.pages.items():
            if page.submit is not None:
                yield path, None, page
        for pattern, page in section.named_pages.items():
            if page.submit is not None:
                yield pattern.pattern, pattern, page


def addresses(path: str, pattern: re.Pattern[str] | None, objects: dict[str, str]) -> list[str]:
    """The addresses of a page in the scene: of each object that its pattern takes."""
    if pattern is None:
        return [path]
    actions = re.search(r"\(([a-z|-]+)\)", path)
    found = []
    for action in actions[1].split("|") if actions else [""]:
        written = re.sub(r"\(([a-z|-]+)\)", action, path).replace("(", "").replace(")", "")
        start, _, rest = re.sub(r"\[\^?[^\]]*\](\+|\{[0-9,]*\})", "{}", written).partition("{}")
        end = rest.rpartition("}")[2]
        found += [each for name in objects if pattern.fullmatch(each := f"{start}{objects[name]}{end}")]
    assert found, f"give an example of {path}"
    return found


def allowed(level: AdministratorLevel, address: str, page: PortalPage) -> bool:
    """Whether the level has the right at all, as the table of rights says."""
    right = page.needs or HIDDEN.get(address.rpartition("/")[2])
    if right is None:
        assert address in OPEN_TO_ALL, f"{address} declares no right"
        return True
    return (level, *right) in RULES


@pytest.mark.parametrize("level", first_or_full(LEVELS, first="sub_administrator"))
async def test_a_level_opens_and_sends_exactly_the_forms_that_it_has_the_right_to(
    made: World, level: AdministratorLevel
) -> None:
    """D53: GET is refused if and only if POST is, whatever the form holds."""
    browser, objects = await scene(made, level)
    form = token(browser)
    for path, pattern, page in forms():
        for address in addresses(path, pattern, objects):
            refused = {404} if address.rpartition("/")[2] in HIDDEN else {403}
            await go(made, browser, MORE.get(address, address).format(**objects))
            assert browser.response is not None
            got = browser.response.status_code
            sent = (await send(made, browser, address, **form)).status_code
            if allowed(level, address, page):  # of what there is, some may still be out of reach: another's service
                assert (got == 403) == (sent == 403), address
            else:
                assert {got, sent} == refused, address


@pytest.mark.parametrize("level", first_or_full(LEVELS, first="sub_administrator"))
async def test_a_form_that_is_shown_is_not_refused_for_want_of_a_right(made: World, level: AdministratorLevel) -> None:
    """D53, D54: a page about somebody out of reach says why instead of showing its form."""
    browser, objects = await scene(made, level)
    shown = set()
    for path, pattern, _ in forms():
        for address in addresses(path, pattern, objects):
            await go(made, browser, MORE.get(address, address).format(**objects))
            found = browser.page.form_with("form_token")
            if found is None or address.partition("?")[0] not in found.action:
                continue
            form = form_of(browser, "form_token")
            answer = await send(made, browser, address, **{**form, **FILLED})
            text = answer.text
            if answer.status_code == 303:
                await browser.open(urljoin(made.base, answer.headers["location"]), site="none")
                text = browser.page.text
            assert answer.status_code in {200, 303, 404}, address
            assert not [why for why in REASONS if why in text], address
            shown.add(path)
    print("SHOWN", sorted(shown))
    assert len(shown) > (2 if level == "sub_administrator" else 15)


@pytest.mark.parametrize("level", first_or_full(LEVELS, first="sub_administrator"))
async def test_every_link_of_a_page_can_be_followed_by_the_level_that_sees_it(
    made: World, level: AdministratorLevel
) -> None:
    """D53: nobody is led to a page that is then refused."""
    browser, _ = await scene(made, level)
    assert len(await all_followed(browser, portal(made))) > 8
