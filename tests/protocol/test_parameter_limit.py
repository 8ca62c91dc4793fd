"""At most 100 parameters, in a body, in a query and in a page's form (D47: at most 100 form pairs)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

import pytest

from tests.protocol.deployment import AUTHORIZE, ISSUER, PAR, TOKEN
from tests.protocol.expectations import EVERY, PUSHED
from tests.protocol.refusals import error_page, json_refusal

if TYPE_CHECKING:
    from tests.protocol.provider import World

pytestmark = pytest.mark.generations(*PUSHED)
SENTENCE = "the request has more than 100 parameters"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("pair", [b"%41", b"x=1", b"", b"%zz", b"\xff", b"state=st4te"])
def test_a_body_of_more_parameters_is_refused_before_it_is_decoded(shared: World, pair: bytes) -> None:
    """D47, Spec 7.1, 7.3: invalid_request that names the limit, also if what could not be decoded stands in it."""
    body = b"&".join([b"state=st4te", *[pair] * 100])
    with shared.nothing_spent():
        for url in (PAR, TOKEN):
            answer = shared.run(shared.http.post(url, content=body, headers=FORM))
            assert json_refusal(answer, 400, "invalid_request").startswith(SENTENCE)
        answer = shared.run(shared.http.post(AUTHORIZE, content=body, headers=FORM))
        error_page(answer)


def test_exactly_a_hundred_parameters_are_read(shared: World) -> None:
    """D47; D14: those that nobody knows are ignored."""
    for pairs, status in ((100, 201), (101, 400)):
        shared.rp.restart()
        form = shared.rp.push_parameters()
        body = b"&".join([*[b"x"] * (pairs - len(form)), urlencode(form).encode()])
        assert shared.push(body=body).status_code == status


@pytest.mark.generations(*EVERY)
def test_a_query_of_more_parameters_is_an_error_page(shared: World) -> None:
    """D47, D16: what fails before the redirect URI is proven becomes a page."""
    url = shared.asked(state="st4te")
    assert shared.get(f"{url}{'&x' * 40}").status_code in {302, 303}
    with shared.nothing_spent():
        answer = shared.get(f"{url}{'&%78' * 100}")
    assert answer.status_code == 400
    error_page(answer)


@pytest.mark.generations(*EVERY)
def test_a_page_form_of_more_parameters_is_refused_and_the_sign_in_goes_on(shared: World) -> None:
    """D47"""
    browser = shared.new_browser()
    at = f"{ISSUER}{shared.get(shared.asked(), browser).headers['location']}"
    assert shared.get(at, browser).status_code == 200  # what legacy's browser holds is stored now (D34)
    same = {**FORM, "Sec-Fetch-Site": "same-origin"}
    answer = shared.run(browser.http.post(at, content="user_name=alice" + "&%41" * 100, headers=same))
    assert answer.status_code == 400
    error_page(answer)
    assert shared.get(at, browser).status_code == 200
    assert urlsplit(at).path.startswith("/sign-in/")
