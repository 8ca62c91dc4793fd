"""A readiness case: a fault, the expectations, and the remedy.

The rules that cases of the readiness report try.

Judging of an observation: pure expectations, and the verdict of a case.

An expectation looks at an observation and returns a finding, or None if it holds. Refusals prove something only if the
provider's fault reached the relying party, and if the relying party signs people in otherwise: else a case is not
judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from corpid_dev.readiness.observation import Expectation, Facts, Finding, Observation, SignIn, Verdict, calls_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid_dev.flows.exchanges import Endpoint

RESOURCE: Final = "resource"
"""in an order: the endpoint that the relying party reads roles from"""


class OpenedIn(Enum):
    """The browser, or browsers, in which the callback is opened."""

    SAME = auto()
    OTHER = auto()
    SAME_THEN_OTHER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case: what is done, what is expected, and how to fix."""

    id: str
    title: str
    """the situation and what is expected, for a reader who does not know the protocol by heart"""
    expects: tuple[Expectation, ...]
    fix: str
    sources: tuple[Source, ...]
    orders: tuple[Mapping[str, Any], ...] = ()
    """placed at the provider before the login, in the words of its developer API"""
    prepared: tuple[Mapping[str, Any], ...] = ()
    """carried out before an ordinary sign-in that comes before the case"""
    opened_in: OpenedIn = OpenedIn.SAME
    sign_ins: int = 1
    needs_iss: bool = False
    needs_push: bool = False
    """it needs pushed requests or DPoP, which come together"""
    needs_signed: bool = False
    """it needs answers of userinfo that are signed"""
    new_key: bool = False
    """it signs with a new key; some libraries fetch the key set only once a minute, so it may be tried again after one"""
    advice: bool = False
    """worth knowing, but no fault"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A rule that a case tries."""

    name: str
    url: str = ""


def rfc(number: int, section: str) -> Source:
    return Source(
        name=f"RFC {number} §{section}", url=f"https://www.rfc-editor.org/rfc/rfc{number}.html#section-{section}"
    )


def core(section: str, anchor: str) -> Source:
    """A section of OpenID Connect Core 1.0."""
    return Source(
        name=f"OpenID Connect Core §{section}",
        url=f"https://openid.net/specs/openid-connect-core-1_0.html#{anchor}",
    )


def law(section: str) -> Source:
    """A section of the specification."""
    return Source(name=f"CorpID specification §{section}")


FAPI: Final = Source(
    name="FAPI 2.0 Security Profile §5.3.3", url="https://openid.net/specs/fapi-security-profile-2_0-final.html"
)
STATE: Final = (rfc(6749, "10.12"), rfc(9700, "2.1"))
ISS: Final = (rfc(9207, "2.4"), rfc(9700, "2.1"))
ID_TOKEN: Final = core("3.1.3.7", "IDTokenValidation")
AT_HASH: Final = core("3.1.3.8", "CodeFlowTokenValidation")
ROTATION: Final = core("10.1.1", "RotateSigKeys")
USERINFO: Final = core("5.3.4", "UserInfoResponseValidation")
SUB: Final = core("5.3.2", "UserInfoResponse")
ALG: Final = rfc(8725, "3.1")
CACHE: Final = (law("8"),)
UNKNOWN_KEY: Final = (law("4.7"), ROTATION)


LEAST_CHARACTERS: Final = 22
"""of a value with 128 bits: base64url carries six bits a character"""
ASSERTION_SECONDS: Final = 120
"""the longest life of a client assertion in the generation `current` (D8); the others allow more"""
TOKEN_REQUESTS: Final = 3
_MARKS_NOTHING: Final = frozenset({"rotate-key"})
"""orders that are carried out when they are placed, not in an answer"""


def _failed(seen: str) -> Finding:
    return Finding(verdict=Verdict.FAILED, seen=seen)


def _unclear(seen: str) -> Finding:
    return Finding(verdict=Verdict.NOT_JUDGED, seen=seen)


# --- Expectations ---------------------------------------------------------------------------------------------


def session_begins(observation: Observation, facts: Facts) -> Finding | None:  # noqa: ARG001
    """Somebody is signed in at the end of every sign-in."""
    for each in observation.sign_ins:
        stopped = _not_started(each)
        if stopped:
            return _failed(stopped)
        if not each.session:
            return _failed(f"no session began: {each.page}")
    return None


def refused(observation: Observation, facts: Facts) -> Finding | None:
    """Nobody is signed in, and there is a page."""
    stopped = _not_started(observation.last)
    if stopped:
        return _unclear(stopped)
    if observation.last.session:
        return _failed(f"a session began: {observation.last.page}")
    return no_crash(observation, facts)


def no_crash(observation: Observation, facts: Facts) -> Finding | None:  # noqa: ARG001
    """Every page was made on purpose."""
    for each in observation.sign_ins:
        for page in (*((each.login,) if each.login else ()), *each.pages):
            if page.crashed:
                return _failed(f"it crashed: {page}. Catch the error and show a page")
    return None


def stays_here(observation: Observation, facts: Facts) -> Finding | None:  # noqa: ARG001
    """The login ends at a page, not at the authorization endpoint."""
    if observation.last.login is None:
        return _failed("the browser was still sent to the authorization endpoint")
    if observation.last.login.session:
        return _failed(f"a session began: {observation.last.login}")
    return None


def no_token_request(observation: Observation, facts: Facts) -> Finding | None:  # noqa: ARG001
    """The code of a refused callback is not redeemed."""
    calls = calls_to(observation.last.callback_calls, "token")
    return _failed(f"the code was sent to the token endpoint ({len(calls)} requests)") if calls else None


def no_roles(observation: Observation, facts: Facts) -> Finding | None:
    """No page shows a role that was not read."""
    page = observation.last.page
    shown = sorted(role for role in facts.roles if page and role in page.text)
    return _failed(f"the page shows roles that the provider did not send: {', '.join(shown)}") if shown else None


def at_most(most: int, endpoint: Endpoint) -> Expectation:
    """At most so many requests to an endpoint."""

    def expectation(observation: Observation, facts: Facts) -> Finding | None:  # noqa: ARG001
        count = len(observation.calls_of(endpoint))
        return _failed(f"{count} requests to {endpoint}, at most {most} are expected") if count > most else None

    return expectation


def code_sent_once(observation: Observation, facts: Facts) -> Finding | None:  # noqa: ARG001
    """A refused code is not sent again."""
    codes = [call.parameters.get("code", call.exchange_id) for call in observation.calls_of("token")]
    return _failed("the same code was sent again") if len(set(codes)) < len(codes) else None


def fresh(*names: str) -> Expectation:
    """Two requests have different values of these parameters, hard to guess."""

    def expectation(observation: Observation, facts: Facts) -> Finding | None:  # noqa: ARG001
        requests = [each.request for each in observation.sign_ins]
        if len(requests) < 2 or not all(requests):
            return _unclear("the authorization requests were not seen")
        for name in names:
            values = [each.get(name, "") for each in requests]
            if not all(values):
                return _failed(f"a request has no {name}")
            if len(set(values)) < len(values):
                return _failed(f"two requests have the same {name}")
            short = min(values, key=len)
            if len(short) < LEAST_CHARACTERS:
                return _failed(f"{name} has {len(short)} characters, too few for 128 bits")
        return None

    return expectation


def s256(observation: Observation, facts: Facts) -> Finding | None:  # noqa: ARG001
    """Every request names the challenge method S256."""
    methods = {each.request.get("code_challenge_method", "none") for each in observation.sign_ins}
    return None if methods == {"S256"} else _failed(f"code_challenge_method is {', '.join(sorted(methods))}")


def proof_keys_fresh(observation: Observation, facts: Facts) -> Finding | None:  # noqa: ARG001
    """Two sign-ins prove two different DPoP keys."""
    keys = [{key for call in each.calls if (key := call.proof_key())} for each in observation.sign_ins]
    if len(keys) < 2 or not all(keys):
        return _unclear("no DPoP proof was seen")
    return _failed("two sign-ins used the same DPoP key") if set.intersection(*keys) else None


def assertions_short(observation: Observation, facts: Facts) -> Finding | None:  # noqa: ARG001
    """Client assertions live as short as `current` asks, in every generation."""
    lives = [seconds for call in observation.calls if (seconds := call.assertion_seconds()) is not None]
    if not lives:
        return _unclear("no client assertion could be read")
    longest = max(lives)
    return _failed(f"a client assertion lives {longest:.0f} seconds") if longest > ASSERTION_SECONDS else None


def _not_started(sign_in: SignIn) -> str:
    """The reason that no callback was opened, empty if one was."""
    if sign_in.problem:
        return sign_in.problem
    if not sign_in.pages:
        return f"the login did not lead to the provider, but to a page ({sign_in.login}); see --login-form"
    return ""


# --- The verdict ----------------------------------------------------------------------------------------------


def judge(case: Case, observation: Observation, facts: Facts) -> Finding:
    """The verdict of a case; the worst finding decides."""
    findings = [found for expects in case.expects if (found := expects(observation, facts)) is not None]
    unmet = _unmet(case, observation)
    failed = next((each for each in findings if each.verdict is Verdict.FAILED), None)
    if failed is not None and not (unmet and observation.last.pages):
        return Finding(verdict=Verdict.WARNED, seen=failed.seen) if case.advice else failed
    if unmet:
        return _unclear(unmet)
    if findings:
        return findings[0]
    if observation.recovered is False:
        return _unclear("it was refused, but so was an ordinary sign-in right afterwards")
    page = observation.last.page
    remark = " (at the second try: the key set is not fetched twice in a minute)" if observation.waited else ""
    return Finding(verdict=Verdict.PASSED, seen=f"{page}{remark}")


def _unmet(case: Case, observation: Observation) -> str:
    """The order that never reached the relying party, empty if all did."""
    obeyed = {name for call in observation.calls for name in call.orders}
    for order in case.orders:
        name = str(order["order"])
        if name not in _MARKS_NOTHING and name not in obeyed:
            where = order.get("endpoint") or order.get("token") or "the provider"
            return f"the fault did not reach the relying party: nothing came from {where}, or nothing of this kind"
    return ""


def not_applicable(case: Case, facts: Facts) -> str:
    """The reason to leave a case out, empty if there is none."""
    if case.needs_iss and not facts.sends_iss:
        return "this provider's callbacks carry no iss; those of `corpid demo --preset public-service` do"
    if case.needs_push and not facts.pushes:
        return "the generation of this relying party has neither pushed requests nor DPoP"
    if case.needs_signed and not facts.signs_resource:
        return "this client's answers of userinfo are not signed"
    return ""
