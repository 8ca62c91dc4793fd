"""What exists once is used once, however many ask at the same moment, and in whichever process (D15, D18)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from corpid_dev.relying_party import people
from corpid_dev.relying_party.people import Person
from tests.faults.serving import Deployment, deployment, outside
from tests.protocol.directory import FOREIGN, HARBOUR, PASSWORD, TOTP_SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx


MANY = 50
BOB = Person(user_name="bob", password=PASSWORD, totp_secret=TOTP_SECRET)
"""acts for two entities; remembers which code he used last"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Two processes on one database."""
    with deployment(tmp_path_factory.mktemp("races"), processes=2) as made:
        yield made


def outcomes(answers: list[httpx.Response]) -> Counter[Any]:
    """How often each answer came: its error code, or its status where it is none."""
    return Counter(answer.json().get("error", answer.status_code) for answer in answers)


async def test_of_fifty_simultaneous_redemptions_one_succeeds_and_its_token_is_dead_afterwards(
    served: Deployment,
) -> None:
    """D18: a replay kills the first token, even if it loses the race by a hair."""
    async with outside(served) as person:
        rp = person.party()
        code = await person.code(rp)
        answers = await asyncio.gather(*(rp.token(code) for _ in range(MANY)))
        assert outcomes(answers) == {200: 1, "invalid_grant": MANY - 1}
        (token,) = [answer.json()["access_token"] for answer in answers if answer.status_code == 200]
        refusal = await rp.resource(access_token=token)
        assert (refusal.status_code, refusal.json()["error"]) == (401, "invalid_token")


@pytest.mark.full
async def test_of_fifty_equal_token_requests_one_succeeds_and_its_token_lives(served: Deployment) -> None:
    """D18: the same request byte for byte kills nothing."""
    async with outside(served) as person:
        rp = person.party()
        code = await person.code(rp)
        url = (await rp.discover())["token_endpoint"]
        form, proof = {"client_assertion": rp.assertion()}, {"DPoP": rp.proof("POST", url)}
        answers = await asyncio.gather(*(rp.token(code, form, proof) for _ in range(MANY)))
        assert outcomes(answers) == {200: 1, "invalid_dpop_proof": MANY - 1}
        (token,) = [answer.json()["access_token"] for answer in answers if answer.status_code == 200]
        assert (await rp.resource(access_token=token)).status_code == 200


@pytest.mark.full
async def test_of_fifty_simultaneous_uses_of_one_proof_one_counts_and_no_other_assertion_is_spent(
    served: Deployment,
) -> None:
    """D7; Spec "The order of a request": a replayed proof leaves the assertion unspent."""
    async with outside(served) as person:
        rp = person.party()
        proof = {"DPoP": rp.proof("POST", (await rp.discover())["pushed_authorization_request_endpoint"])}
        assertions = [rp.assertion() for _ in range(MANY)]
        answers = await asyncio.gather(*(rp.push({"client_assertion": one}, proof) for one in assertions))
        assert outcomes(answers) == {201: 1, "invalid_dpop_proof": MANY - 1}
        again = await asyncio.gather(*(rp.push({"client_assertion": one}) for one in assertions))
        assert outcomes(again) == {201: MANY - 1, "invalid_client": 1}


async def test_of_fifty_simultaneous_uses_of_one_assertion_one_counts(served: Deployment) -> None:
    """D8: at PAR and the token endpoint together."""
    async with outside(served) as person:
        rp = person.party()
        form = {"client_assertion": rp.assertion()}
        asked = [rp.push(form) if n % 2 else rp.token("no-code", form) for n in range(MANY)]
        answers = outcomes(list(await asyncio.gather(*asked)))
        assert answers.pop("invalid_client") == MANY - 1
        assert answers in ({201: 1}, {"invalid_grant": 1})


async def test_of_fifty_simultaneous_uses_of_one_proof_at_userinfo_one_counts(served: Deployment) -> None:
    """D7: at a resource."""
    async with outside(served) as person:
        rp = person.party()
        token = (await rp.token(await person.code(rp))).json()["access_token"]
        url = (await rp.discover())["userinfo_endpoint"]
        proof = {"DPoP": rp.proof("GET", url, token)}
        answers = await asyncio.gather(*(rp.resource("GET", proof, access_token=token) for _ in range(MANY)))
        assert Counter(answer.status_code for answer in answers) == {200: 1, 401: MANY - 1}


async def test_of_twenty_simultaneous_arrivals_of_a_signed_in_browser_one_gets_a_code(served: Deployment) -> None:
    """D15: completing is `add`; the others are told invalid_request_uri."""
    async with outside(served) as person:
        rp = person.party()
        url = await rp.begin()
        answers = await asyncio.gather(*(person.browser.http.get(url, follow_redirects=False) for _ in range(20)))
        told_to = [parse_qs(urlsplit(answer.headers["location"]).query) for answer in answers]
        codes = [query["code"][0] for query in told_to if "code" in query]
        assert len(codes) == 1
        assert Counter(query["error"][0] for query in told_to if "error" in query) == {"invalid_request_uri": 19}
        assert (await rp.token(codes[0])).status_code == 200


@pytest.mark.parametrize("choose", ["the same entity", "two entities"])
async def test_of_twenty_simultaneous_clicks_on_the_last_button_there_is_one_code(
    served: Deployment, choose: str
) -> None:
    """D15: exactly one wins, and every click ends with the same redirect."""
    async with outside(served) as person:
        rp, browser = person.party(), person.browser
        browser.http.cookies.clear()
        await browser.open(await rp.begin())
        for _ in range(2):
            await people.answer_page(browser, BOB)
        form = browser.page.form_with("entity")
        assert form is not None
        fields = {control.name: control.value for control in form.controls if not control.choice}
        entities = [HARBOUR.entity_id, FOREIGN.entity_id if choose == "two entities" else HARBOUR.entity_id]
        where = f"{served.issuer}{form.action}"
        headers = {"Sec-Fetch-Site": "same-origin"}
        await asyncio.gather(
            *(browser.http.post(where, data={**fields, "entity": entities[n % 2]}, headers=headers) for n in range(20))
        )
        leave = f"{browser.url}/leave"
        lefts = await asyncio.gather(*(browser.http.get(leave, follow_redirects=False) for _ in range(5)))
        (callback,) = {answer.headers["location"] for answer in lefts}
        tokens = await rp.redeem(callback)
        assert tokens.id_token["entity"]["sub"] in entities


@pytest.mark.full
async def test_a_leaked_code_spends_nothing_with_another_client_or_a_wrong_verifier(served: Deployment) -> None:
    """D18: another client or a wrong verifier finds nothing, spends nothing, kills nothing, also at the same moment."""
    async with outside(served) as person:
        rp, thief = person.party(), person.party("rp-2")
        code = await person.code(rp)
        thief.sign_in = rp.sign_in
        wrong = [thief.token(code) if n % 2 else rp.token(code, {"code_verifier": "x" * 43}) for n in range(MANY)]
        answers = await asyncio.gather(*wrong[: MANY // 2], rp.token(code), *wrong[MANY // 2 :])
        assert outcomes(answers) == {200: 1, "invalid_grant": MANY}
        assert answers[MANY // 2].status_code == 200
        assert (await rp.resource(access_token=answers[MANY // 2].json()["access_token"])).status_code == 200
