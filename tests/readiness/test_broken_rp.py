"""The relying party with a defect: strict without one, and with each the one fault that its name says.

A small provider with keys of its own says what a readiness case is about. The report itself is tested elsewhere.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest
from starlette.responses import JSONResponse, Response

from corpid_dev.testing import running
from tests.machine import free_port
from tests.readiness import broken_rp, small_provider
from tests.readiness.broken_rp import FAILED, SIGNED_IN, RelyingParty
from tests.readiness.broken_trust import DEFECTS
from tests.readiness.small_provider import SmallProvider, rows
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


NOW: Final = int(time.time())
HOUR: Final = 3600
BEGINS, REFUSED, EITHER = "a session begins", "a page says that it failed", "no crash"


@dataclass
class Scene:
    """A browser at the relying party, whose provider is the small one."""

    rp: RelyingParty
    provider: SmallProvider
    open: ExitStack

    def __post_init__(self) -> None:
        self.browser = self.open.enter_context(httpx.Client(trust_env=False, timeout=30, verify=False))

    def begun(self) -> str:
        """Where the relying party sends the browser; its own page if it does not."""
        answer = self.browser.get(f"{self.rp.home}/login")
        return answer.headers.get("location") or self._seen(answer)

    def returned(self, callback: str) -> str:
        return self._seen(self.browser.get(callback, follow_redirects=True))

    def sign_in(self, **changes: str | None) -> str:
        url = self.begun()
        return self.returned(self.provider.callback(url, **changes)) if url.startswith("http") else url

    def in_another_browser(self) -> Scene:
        return Scene(self.rp, self.provider, self.open)

    @staticmethod
    def _seen(answer: httpx.Response) -> str:
        if answer.status_code >= 500:
            return "a crash"
        if SIGNED_IN in answer.text:
            return BEGINS
        assert FAILED in answer.text
        return REFUSED


CASES: dict[str, Callable[[Scene], bool]] = {}
"""readiness case → whether the relying party did the right thing"""


def case(function: Callable[[Scene], bool]) -> Callable[[Scene], bool]:
    CASES[function.__name__.replace("_", "-")] = function
    return function


def _said(name: str, expected: str, /, **changes: Any) -> None:
    """A case in which the provider says something else at a whole sign-in."""

    def judged(scene: Scene) -> bool:
        for member, value in changes.items():
            setattr(scene.provider, member, value)
        seen = scene.sign_in()
        return seen == expected if expected != EITHER else seen in (BEGINS, REFUSED)

    CASES[name] = judged


def _callback(name: str, **changes: str | None) -> None:
    """A case in which the callback is another: it is refused, and no code is redeemed."""

    def judged(scene: Scene) -> bool:
        return scene.sign_in(**changes) == REFUSED and not scene.provider.asked["token"]

    CASES[name] = judged


def _error(status: int, error: str, **headers: str) -> Response:
    return JSONResponse({"error": error}, status, {name.replace("_", "-"): value for name, value in headers.items()})


_said("baseline", BEGINS)
_callback("state-altered", state="another")
_callback("state-missing", state=None)
_callback("iss-altered", iss="https://another.example")
_callback("iss-missing", iss=None)
_callback("error-callback", error="access_denied", code=None)
_callback("error-callback-state", error="access_denied", code=None, state="another")


@case
def other_browser(scene: Scene) -> bool:
    callback = scene.provider.callback(scene.begun())
    return scene.in_another_browser().returned(callback) == REFUSED


@case
def callback_repeated(scene: Scene) -> bool:
    callback = scene.provider.callback(scene.begun())
    scene.returned(callback)
    return scene.in_another_browser().returned(callback) == REFUSED


@case
def code_unknown(scene: Scene) -> bool:
    return scene.sign_in(code="never") == REFUSED


_said("id-token-signature", REFUSED, sign=small_provider.signed_by_another)
_said("id-token-alg-none", REFUSED, sign=small_provider.unsigned)
_said("id-token-alg-hs256", REFUSED, sign=small_provider.signed_with_public_key)
_said("id-token-iss", REFUSED, id_token={"iss": "https://another.example"})
_said("id-token-aud", REFUSED, id_token={"aud": "another"})
_said("id-token-aud-further", REFUSED, id_token={"aud": ["broken-rp", "another"]})
_said("id-token-nonce", REFUSED, id_token={"nonce": "another"})
_said("id-token-nonce-missing", REFUSED, id_token={"nonce": None})
_said("id-token-at-hash", REFUSED, id_token={"at_hash": "another"})
_said("id-token-exp", REFUSED, id_token={"iat": NOW - 2 * HOUR, "exp": NOW - HOUR})
_said("id-token-iat", REFUSED, id_token={"iat": NOW + HOUR, "exp": NOW + 2 * HOUR})
_said("id-token-sub-missing", REFUSED, id_token={"sub": None})
_said("id-token-other-key", REFUSED, encrypt=small_provider.encrypted_to_another)
_said("id-token-not-encrypted", REFUSED, encrypt=lambda token, _: token)


@case
def key_rotated(scene: Scene) -> bool:
    scene.sign_in()
    scene.provider.rotate()
    return scene.sign_in() == BEGINS


@case
def key_unknown(scene: Scene) -> bool:
    scene.sign_in()
    before = scene.provider.asked["keys"]
    scene.provider.key = small_provider.new_key()
    return scene.sign_in() == REFUSED and scene.provider.asked["keys"] - before <= 2


@case
def key_retired(scene: Scene) -> bool:
    scene.sign_in()
    retired = scene.provider.rotate()
    scene.sign_in()
    scene.provider.key = retired
    return scene.sign_in() == REFUSED


@case
def keys_cached(scene: Scene) -> bool:
    return scene.sign_in() == scene.sign_in() and scene.provider.asked["keys"] <= 1


@case
def discovery_cached(scene: Scene) -> bool:
    return scene.sign_in() == scene.sign_in() and scene.provider.asked["discovery"] <= 1


@case
def keys_unavailable(scene: Scene) -> bool:
    scene.sign_in()
    scene.provider.rotate()
    scene.provider.answers["keys"] = Response(status_code=500)
    return scene.sign_in() == REFUSED


_said("userinfo-signature", REFUSED, sign_userinfo=small_provider.signed_by_another)
_said("userinfo-sub", REFUSED, userinfo={"sub": "another"})
_said("userinfo-aud", REFUSED, userinfo={"aud": "another"})
_said("userinfo-iss", REFUSED, userinfo={"iss": "https://another.example"})
_said("userinfo-extra-roles", BEGINS, userinfo={"auth_info": rows("Applicant", "Astronaut")})
_said("userinfo-empty", BEGINS, userinfo={"auth_info": rows()})
_said("userinfo-many", BEGINS, userinfo={"auth_info": rows(*["Applicant"] * 500)})
_said("userinfo-error", EITHER, answers={"userinfo": Response(status_code=500)})
_said("userinfo-unauthorized", EITHER, answers={"userinfo": _error(401, "invalid_token")})


@case
def token_error(scene: Scene) -> bool:
    scene.provider.answers["token"] = _error(400, "invalid_grant")
    return scene.sign_in() == REFUSED and scene.provider.asked["token"] == 1


@case
def token_unavailable(scene: Scene) -> bool:
    scene.provider.answers["token"] = _error(503, "temporarily_unavailable", retry_after="30")
    return scene.sign_in() == REFUSED and scene.provider.asked["token"] <= 3


_said("token-slow", EITHER, token_seconds=broken_rp.HASTY_SECONDS + 0.5)
_said("token-type", REFUSED, token_type="Bearer")
_said("dpop-nonce", BEGINS, wants_nonce=True)


def _pushed(name: str, answer: Response) -> None:
    """A case in which nobody may be sent to the provider, since the request could not be pushed."""

    def judged(scene: Scene) -> bool:
        scene.provider.answers["par"] = answer
        return scene.begun() == REFUSED

    CASES[name] = judged


_pushed("par-error", _error(400, "invalid_request"))
_pushed("par-unavailable", _error(503, "temporarily_unavailable", retry_after="30"))


def _fresh(name: str, member: str) -> None:
    def judged(scene: Scene) -> bool:
        scene.begun()
        scene.begun()
        return len({each[member] for each in scene.provider.pushed}) == 2

    CASES[name] = judged


_fresh("pkce-fresh", "code_challenge")
_fresh("state-fresh", "state")


@case
def proof_key_fresh(scene: Scene) -> bool:
    scene.begun()
    scene.begun()
    return scene.provider.proof_keys[0] != scene.provider.proof_keys[1]


@case
def assertions_short(scene: Scene) -> bool:
    scene.begun()
    return all(each["exp"] - each["iat"] <= 120 for each in scene.provider.assertions)


ALSO_FAILED: Final = {
    "baseline": {"key-rotated", "userinfo-extra-roles", "userinfo-empty", "userinfo-many", "dpop-nonce"},
    "code-unknown": {"token-error"},
    "key-rotated": {"key-retired"},
}
"""defect → further cases that it cannot pass, for the same reason"""


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def rp(port: int) -> Iterator[RelyingParty]:
    with broken_rp.running(issuer=f"http://127.0.0.1:{port}") as made:
        yield made


@pytest.fixture(scope="module")
def website(port: int) -> Iterator[list[SmallProvider]]:
    """A server whose provider is the last of these."""
    providers: list[SmallProvider] = []

    async def current(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await providers[-1].asgi(scope, receive, send)

    with broken_rp.serving(current, port):
        yield providers


@pytest.fixture
def scene(rp: RelyingParty, website: list[SmallProvider]) -> Iterator[Callable[[str], Scene]]:
    with ExitStack() as stack:

        def begun(defect: str) -> Scene:
            rp.become(defect)
            website.append(SmallProvider(rp.issuer, encryption=rp.encryption))
            return Scene(rp, website[-1], stack)

        yield begun


def test_each_defect_has_its_case() -> None:
    assert tuple(CASES) == DEFECTS


@pytest.mark.parametrize("name", first_or_full(DEFECTS))
def test_the_strict_one_does_the_right_thing_and_the_one_with_the_defect_does_not(
    scene: Callable[[str], Scene], name: str
) -> None:
    assert CASES[name](scene(""))
    assert not CASES[name](scene(name))


@pytest.mark.full
@pytest.mark.parametrize("defect", first_or_full(DEFECTS))
def test_a_defect_is_one_fault_alone(scene: Callable[[str], Scene], defect: str) -> None:
    """What else goes wrong with it is no other check that is missing."""
    failed = {name for name, judged in CASES.items() if name != "token-slow" and not judged(scene(defect))}
    assert failed - {defect} == ALSO_FAILED.get(defect, set())


@pytest.mark.full
def test_the_strict_one_signs_in_at_a_real_provider() -> None:
    with running() as provider, broken_rp.running(issuer=provider.issuer) as made:
        provider.apply(made.registration("HARBOUR-PERMIT"))
        with httpx.Client(trust_env=False, timeout=60) as browser:
            begun = browser.get(f"{made.home}/login")
            callback = provider.sign_in(begun.headers["location"], "rina")
            page = browser.get(callback, follow_redirects=True)
            assert f"{SIGNED_IN} Rina Example" in page.text
            assert "Applicant at HARBOUR-PERMIT" in page.text
            assert FAILED in browser.get(callback).text
