"""Provisioning tokens in the portal: shown once, revoked, of owners alone (D60)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from corpid.flows import encrypted_values, namespaces
from corpid.flows.directory import provisioning
from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken, token_hash
from corpid.rules.directory.records import Entity
from tests.contexts import context
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, send
from tests.sign_in.world import World, form_of, shown_again

if TYPE_CHECKING:
    from corpid.stores.sql.registry import Registry
    from corpid_dev.relying_party.browser import Browser


async def tokens(made: World, entity_id: str = ACME) -> list[RegisteredProvisioningToken]:
    registry: Registry = made.provider.registry
    return await registry.provisioning.tokens(entity_id)


def shown(browser: Browser) -> str:
    """The token on a page."""
    assert browser.response is not None
    found = re.search(r'<code class="key">([A-Za-z0-9_-]{43})</code>', browser.response.text)
    assert found is not None, browser.page.text
    return found[1]


async def test_a_token_is_shown_once_with_how_to_use_it_and_works(made: World) -> None:
    """D60."""
    await appoint(made)
    browser = await in_portal(made, "tokens/new")
    await browser.fill_and_submit("name", name="Staff directory", days="90")
    secret = shown(browser)
    assert f"{made.base}/scim/v2" in browser.page.text
    [stored] = await tokens(made)
    assert stored.token_hash == token_hash(secret)
    assert stored.expires_at - stored.created_at == 90 * 86_400
    registry: Registry = made.provider.registry
    assert await provisioning.authenticate_token(registry, secret, now=made.clock()) is not None
    await go(made, browser, "tokens")
    assert secret not in browser.page.text
    assert "Staff directory" in browser.page.text
    assert "Alice Tan" in browser.page.text


async def test_a_form_sent_twice_makes_one_token(made: World) -> None:
    """D60, D73: both lead to the page that shows it."""
    await appoint(made)
    browser = await in_portal(made, "tokens/new")
    token = form_of(browser, "name")
    first = await send(made, browser, "tokens/new", **{**token, "name": "HR", "days": "365"})
    second = await send(made, browser, "tokens/new", **{**token, "name": "HR", "days": "365"})
    assert first.headers["Location"] == second.headers["Location"]
    [stored] = await tokens(made)
    await go(made, browser, f"tokens/{stored.token_id}/created")
    assert stored.token_hash == token_hash(shown(browser))
    changed = await send(made, browser, "tokens/new", **{**token, "name": "Other", "days": "365"})
    late = await shown_again(browser, changed)
    assert "This form was already sent" in late.text
    assert len(await tokens(made)) == 1


async def test_a_new_token_stays_on_its_page_for_a_minute_and_in_its_session_only(made: World) -> None:
    """D73: reloading spends nothing."""
    await appoint(made)
    browser, other = await in_portal(made, "tokens/new"), await in_portal(made, "tokens")
    await browser.fill_and_submit("name", name="HR", days="90")
    secret, page = shown(browser), browser.url.partition("/manage/")[2]
    changes = len(await made.provider.registry.audit.entries(limit=1000))
    await go(made, other, page)
    assert (other.page.heading, secret in other.page.text) == ("The token is no longer shown", False)
    made.clock.pass_(59)
    for _ in range(2):
        await browser.reload()
        assert shown(browser) == secret
    made.clock.pass_(1)
    await browser.reload()
    assert browser.page.heading == "The token is no longer shown"
    assert "revoke it and create another one" in browser.page.text
    assert secret not in browser.page.text
    assert len(await made.provider.registry.audit.entries(limit=1000)) == changes
    assert len(await tokens(made)) == 1


async def test_a_token_that_is_said_to_be_copied_is_shown_no_more(made: World) -> None:
    """D73: the first of two clicks hides it, and Back does not bring it back."""
    await appoint(made)
    browser = await in_portal(made, "tokens/new")
    await browser.fill_and_submit("name", name="HR", days="90")
    secret, page = shown(browser), browser.url.partition("/manage/")[2]
    token = form_of(browser, "form_token")
    await browser.fill_and_submit("form_token", button="I have copied it")
    assert browser.page.heading == "Provisioning tokens"
    assert await go(made, browser, page) == "The token is no longer shown"
    assert secret not in browser.page.text
    again = await send(made, browser, page, **token)
    assert again.headers["Location"].endswith("/manage/tokens")


async def test_a_new_token_is_stored_nowhere_unencrypted(made: World) -> None:
    """D73."""
    await appoint(made)
    browser = await in_portal(made, "tokens/new")
    await browser.fill_and_submit("name", name="HR", days="90")
    files = b"".join(each.read_bytes() for each in made.directory.rglob("*") if each.is_file())
    assert shown(browser).encode() not in files


async def test_a_token_needs_a_purpose_and_one_of_the_lifetimes(made: World) -> None:
    await appoint(made)
    browser = await in_portal(made, "tokens/new")
    token = form_of(browser, "name")
    for fields in ({"name": "  ", "days": "90"}, {"name": "HR", "days": "4000"}, {"name": "x" * 101, "days": "90"}):
        await shown_again(browser, await send(made, browser, "tokens/new", **{**token, **fields}))
    assert await tokens(made) == []


async def test_a_revoked_token_no_longer_works_and_the_page_says_what_ends(made: World) -> None:
    """D60."""
    await appoint(made)
    browser = await in_portal(made, "tokens/new")
    await browser.fill_and_submit("name", name="HR", days="90")
    secret = shown(browser)
    [stored] = await tokens(made)
    await go(made, browser, f"tokens/{stored.token_id}/revoke")
    assert "will no longer be able to add, change or remove people here" in browser.page.text
    await browser.fill_and_submit("form_token")
    assert "The token has been revoked" in browser.page.text
    registry: Registry = made.provider.registry
    assert await provisioning.authenticate_token(registry, secret, now=made.clock()) is None


async def test_only_owners_see_and_make_tokens_and_only_of_their_organisation(made: World) -> None:
    """D53, D60, D61: an administrator with a form token of their own is refused."""
    await appoint(made, BANYAN, who="alice")
    registry: Registry = made.provider.registry
    browser = await in_portal(made, "tokens/new")
    await browser.fill_and_submit("name", name="HR of Banyan", days="90")
    [foreign] = await tokens(made, BANYAN)
    await made.person("bob", *(await own(made)), name="Bob Lim")
    await appoint(made, level="administrator", who="bob")
    other = await in_portal(made, "administrators/appoint", who="bob")
    for page in ("tokens", "tokens/new", f"tokens/{foreign.token_id}/revoke"):
        assert await go(made, other, page) == "You cannot open this page"
    await go(made, other, "organisation")
    token = form_of(other, "form_token") if other.page.form_with("form_token") else {}
    for page in ("tokens/new", f"tokens/{foreign.token_id}/revoke"):
        sent = await send(made, other, page, **{**token, "name": "x", "days": "90"})
        assert sent.status_code in {303, 403}
    assert [each.token_id for each in await registry.provisioning.tokens(BANYAN)] == [foreign.token_id]
    assert await tokens(made) == []
    await appoint(made, level="owner", who="bob")
    owner = await in_portal(made, "tokens", who="bob")
    assert "HR of Banyan" not in owner.page.text
    await owner.open(f"{made.base}/manage/tokens/{foreign.token_id}/revoke", site="none")
    assert owner.response is not None
    assert owner.response.status_code == 404


async def own(made: World) -> list[Entity]:
    registry: Registry = made.provider.registry
    return list((await registry.directory.read(Entity, [(ACME,)])).values())


async def test_a_secret_knows_until_when_it_is_shown(made: World) -> None:
    """D73: also where the store keeps it for longer."""
    at, place = await context(made.provider), ("one", "two")
    await encrypted_values.keep_secret(at, place, "s3cret")
    entry = namespaces.SHOWN_ONCE.entry(made.provider.policy.base_url, *place)
    sealed = await entry.read(made.provider.transient, now=at.now)
    assert sealed is not None
    async with made.provider.transient.batch(at.now) as batch:
        await entry.put(batch, sealed, seconds=600)
    for seconds, secret in ((59, "s3cret"), (60, "")):
        later = await context(made.provider, now=at.now + seconds)
        assert await encrypted_values.read_secret(later, place) == secret
