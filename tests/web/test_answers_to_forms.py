"""What may answer a form itself is a closed list; anything else is a redirect (D73)."""

from __future__ import annotations

import httpx
import pytest

from corpid.rules.oauth.generations import GENERATIONS
from corpid.web.routes import table
from tests.sign_in.world import FORM, World
from tests.world.provider import DIRECT, answered_by_a_redirect

FORMS = [route.path for route in table([GENERATIONS["current"]]) if route.own_forms]
OWN = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
HTML = {"Content-Type": "text/html; charset=utf-8"}


def answer(path: str, status: int, text: str = "", *, method: str = "POST") -> httpx.Response:
    request = httpx.Request(method, f"http://localhost:8080{path}")
    return httpx.Response(status, headers=HTML, text=text, request=request)


@pytest.mark.parametrize("path", FORMS)
async def test_no_route_that_takes_forms_answers_one_with_a_page(made: World, path: str) -> None:
    """Of nobody, with nothing in it: an error of the closed list, or a redirect."""
    http = await made.http()
    for rest in ("", "unknown", "unknown/password"):
        sent = await http.post(f"{made.base}{path.replace('{rest}', rest)}", content="a=b", headers=OWN)
        assert sent.status_code in DIRECT | {302, 303}, (path, rest)


@pytest.mark.parametrize("path", FORMS)
async def test_every_test_of_a_page_with_forms_is_watched(path: str) -> None:
    """The requests of all tests are looked at: a page with errors, or with a next step, is found wherever it is."""
    where = path.replace("{rest}", "some/page")
    for status in (200, 422):
        with pytest.raises(AssertionError, match="answers a form with a page"):
            await answered_by_a_redirect(answer(where, status, '<input name="form_token">'))
    for status in DIRECT:
        await answered_by_a_redirect(answer(where, status))
    await answered_by_a_redirect(answer(where, 200, method="GET"))
    await answered_by_a_redirect(answer("/sign-in/one/code", 200, "This sign-in is finished"))
