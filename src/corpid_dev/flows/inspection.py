"""The inspector's findings on an exchange, for its page and its JSON (D66).

They are computed when somebody looks: the checks in their order, decoded tokens, clocks, the request as a command, and
the differences from the last request of the same kind that worked.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from corpid.jose.key_ring import ACCESS_TOKEN
from corpid.jose.keys import thumbprint
from corpid.rules.oauth.errors import shorten_value
from corpid.rules.oauth.refusals import Reason
from corpid_dev.flows.exchanges import Exchange, Exchanges, decode_part
from corpid_dev.rules import checks
from corpid_dev.rules.checks import Check, CheckState

JWE_PARTS: Final = 5
REFUSED_FROM: Final = 400
_IN_STEP_SECONDS: Final = 2
_TIMES: Final = re.compile(r'  "(exp|iat|nbf|auth_time|active_from)": ([0-9]{1,12})(?:\.[0-9]+)?,?')
_SOURCES: Final = {"assertion": "client_assertion", "proof": "dpop", "access_token": "authorization"}
_COMPARED: Final = (("assertion", "client assertion"), ("proof", "DPoP proof"), ("access_token", "access token"))
_NEW_EACH_TIME: Final = frozenset(
    {
        "client_assertion", "code", "code_verifier", "code_challenge", "state", "nonce", "request_uri", "jti", "iat",
        "exp", "nbf", "ath", "dpop", "authorization", "content-length", "auth_time", "jwk", "sid",
    }
)  # fmt: skip
"""what differs in every request; whether it is there at all is compared"""
_GLOB: Final = frozenset("[]{}")
"""curl sends several requests for these unless -g says not to"""
_SINGLE_USE: Final = {
    "client_assertion": ("CLIENT_ASSERTION", "the client assertion"),
    "dpop": ("DPOP_PROOF", "the DPoP proof"),
    "code": ("CODE", "the code"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """A check, its state after the exchange, and what was compared."""

    name: str
    state: CheckState
    reason: str = ""
    """of the refusal, if it failed"""
    received: str = ""
    expected: str = ""
    registered: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckGroupResult:
    """Checks that belong together, judged."""

    title: str
    checks: tuple[CheckResult, ...]

    def count(self, *states: str) -> int:
        """The number of checks that passed, failed or the like."""
        return sum(each.state in states for each in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of JSON; `note` says what a time is."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token of the request or of the answer, decoded."""

    title: str
    note: str
    header: tuple[Line, ...]
    claims: tuple[Line, ...]
    outer: tuple[Line, ...] = ()
    """the header of the encryption around it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The distance of a relying party's clock from ours, by one token."""

    token: str
    seconds: int
    """positive: theirs is ahead"""

    @property
    def sentence(self) -> str:
        """The distance in words."""
        if abs(self.seconds) <= _IN_STEP_SECONDS:
            return "in step with this server"
        return f"{abs(self.seconds)} s {'ahead of' if self.seconds > 0 else 'behind'} this server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A member that differs from the last request that worked."""

    where: str
    name: str
    before: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The findings on one exchange."""

    parts: tuple[CheckGroupResult, ...]
    failed: CheckResult | None
    reason: Reason | None
    tokens: tuple[Token, ...]
    clocks: tuple[Clock, ...]
    command: str
    command_notes: tuple[str, ...]
    last_good: int | None
    """id of the last exchange of this kind that worked"""
    differences: tuple[Difference, ...]

    def count(self, *states: str) -> int:
        """The number of checks that passed, failed or the like."""
        return sum(part.count(*states) for part in self.parts)


def inspect(exchange: Exchange, exchanges: Exchanges) -> Inspection:
    """The findings on an exchange. Source: D66"""
    known = sources(exchange)
    parts = _judged(exchange, known)
    failed = next((each for part in parts for each in part.checks if each.state is CheckState.FAILED), None)
    command, notes = _command(exchange)
    good = last_good(exchange, exchanges)
    return Inspection(
        parts=parts,
        failed=failed,
        reason=Reason.__members__.get(exchange.reason.upper()),
        tokens=tuple(_tokens(exchange)),
        clocks=tuple(_clocks(exchange)),
        command=command,
        command_notes=notes,
        last_good=good.exchange_id if good else None,
        differences=tuple(_differences(good, exchange)) if good else (),
    )


def failing(exchange: Exchange) -> str:
    """The name of the failed check of a request.

    Empty if none failed. Source: D66
    """
    check = checks.failed_check(exchange.endpoint, exchange.reason, exchange.detail) if exchange.reason else None
    return check.name if check else ""


def has_worked(exchange: Exchange) -> bool:
    """Return whether the provider did what the request asked. Source: D66"""
    return exchange.status < REFUSED_FROM and not exchange.error and not dict(exchange.callback).get("error")


def last_good(exchange: Exchange, exchanges: Exchanges) -> Exchange | None:
    """The last exchange of this client at this endpoint that worked.

    One that an order changed does not count. Source: D66
    """
    found = [
        each
        for each in exchanges.list_exchanges(client_id=exchange.client_id)
        if each.exchange_id < exchange.exchange_id
        and (each.endpoint, each.issuer_id) == (exchange.endpoint, exchange.issuer_id)
        and has_worked(each)
        and not each.orders
    ]
    return found[-1] if found else None


def _token_of(exchange: Exchange, which: str) -> str:
    name = _SOURCES[which]
    if which == "assertion":
        return exchange.first(name)
    value = exchange.header(name).strip()
    return value.partition(" ")[2].strip() if which == "access_token" else value


def sources(exchange: Exchange) -> dict[str, str]:
    """The values that a check can compare, by name. Source: D66"""
    found = {f"parameter.{name}": shorten_value(value) for name, value in reversed(exchange.parameters)}
    found |= {f"header.{name}": shorten_value(value) for name, value in reversed(exchange.headers)}
    for which in _SOURCES:
        token = _token_of(exchange, which)
        found |= {f"{which}.header.{name}": _member(name, value) for name, value in decode_part(token, 0).items()}
        found |= {f"{which}.{name}": _member(name, value) for name, value in decode_part(token, 1).items()}
    if found.get("header.authorization"):
        found["scheme"] = shorten_value(exchange.header("authorization").partition(" ")[0])
        found["header.authorization"] = f"{found['scheme']} ..."
    if found.get("header.dpop"):
        found["header.dpop"] = "a proof"
    found["method"] = f"{exchange.method} {exchange.path}"
    if exchange.client_id:
        found["client_id"] = shorten_value(exchange.client_id)
    return found


def _member(name: str, value: object) -> str:
    if name == "jwk" and isinstance(value, dict):
        try:
            return f"a key with the thumbprint {thumbprint(value)}"
        except (KeyError, TypeError, ValueError):
            return "not a public key"
    return shorten_value(value)


def _judged(exchange: Exchange, known: Mapping[str, str]) -> tuple[CheckGroupResult, ...]:
    ordered = bool(exchange.orders) and not exchange.reason and exchange.status >= REFUSED_FROM
    pending = exchange.endpoint == "authorize" and not exchange.callback and has_worked(exchange)
    found = checks.states(
        exchange.endpoint,
        exchange.reason,
        present=known,
        detail=exchange.detail,
        known=not ordered,
        pending=pending,
    )
    return tuple(
        CheckGroupResult(title=part.title, checks=tuple(_one(exchange, known, check, state) for check, state in judged))
        for part, judged in found
    )


class _Named(dict[str, str]):
    """Values in an expectation; one that is not known is empty."""

    def __missing__(self, key: str) -> str:
        return ""


def _one(exchange: Exchange, known: Mapping[str, str], check: Check, state: CheckState) -> CheckResult:
    if state in (CheckState.NOT_NEEDED, CheckState.UNKNOWN, CheckState.NOT_REACHED):
        return CheckResult(name=check.name, state=state)
    names = [each.strip() for each in check.source.split(",") if each.strip()]
    values = [(name.rpartition(".")[2], known[name]) for name in names if name in known]
    received = values[0][1] if len(names) == 1 and values else ", ".join(f"{name} {value}" for name, value in values)
    values_by_name = _Named(
        method=exchange.method,
        url=_url(exchange),
        issuer=exchange.issuer,
        host=exchange.issuer.partition("://")[2].partition("/")[0],
        now=f"{exchange.at:.0f}",
        client_id=exchange.client_id,
    )
    values_by_name |= {name.replace(".", "_"): value for name, value in known.items()}
    expected = check.expected.replace("{assertion.sub}", "{assertion_sub}").format_map(values_by_name)
    if state is not CheckState.FAILED:
        return CheckResult(name=check.name, state=state, received=received, expected=expected)
    explained = dict(exchange.explanation.values) if exchange.explanation else {}
    return CheckResult(
        name=check.name,
        state=state,
        reason=exchange.reason,
        received=explained.get("received", received or ("nothing" if names else "")),
        expected=explained.get("expected", expected),
        registered=explained.get("registered", ""),
    )


def _url(exchange: Exchange) -> str:
    """The URL that was asked for, at the issuer's own name."""
    scheme, _, rest = exchange.issuer.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}{exchange.path}"


def lines(value: Mapping[str, Any], at: float) -> tuple[Line, ...]:
    """An object as lines of JSON, with the meaning of its times. Source: D66"""
    found = []
    for line in json.dumps(value, indent=2, ensure_ascii=False).splitlines():
        match = _TIMES.fullmatch(line)
        found.append(Line(text=line, note=_moment(int(match[2]), at) if match else ""))
    return tuple(found)


def _moment(seconds: int, at: float) -> str:
    distance = seconds - int(at)
    relative = (
        f"{abs(distance)} s {'after' if distance > 0 else 'before'} the request" if distance else "at the request"
    )
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC, {relative}"


def _tokens(exchange: Exchange) -> Iterator[Token]:
    for which, title, note in (
        ("assertion", "Client assertion", "parameter client_assertion, signed by the relying party"),
        ("proof", "DPoP proof", "header DPoP, signed by the relying party"),
        ("access_token", "Access token", "header Authorization, signed by this provider"),
    ):
        token = _token_of(exchange, which)
        header, claims = decode_part(token, 0), decode_part(token, 1)
        if header or claims:
            at = exchange.at
            yield Token(title=title, note=note, header=lines(header, at), claims=lines(claims, at))
    outer = _outer(exchange)
    for each in exchange.signed:
        access = each.typ == ACCESS_TOKEN
        title = "Access token" if access else "ID token" if exchange.endpoint == "token" else "Answer"
        sealed = () if access else outer
        note = "issued in this answer, signed by this provider"
        if sealed:
            note += "; shown before it was encrypted for the relying party, whose private key alone opens what was sent"
        yield Token(
            title=title,
            note=note,
            header=lines(each.header, exchange.at),
            claims=lines(each.claims, exchange.at),
            outer=sealed,
        )


def _outer(exchange: Exchange) -> tuple[Line, ...]:
    """The JWE header of the encrypted token in an answer."""
    body = exchange.response_body.decode("utf-8", "replace")
    if body.startswith("{"):
        try:
            body = str(msgspec.json.decode(body).get("id_token", ""))
        except (msgspec.DecodeError, AttributeError):
            return ()
    return lines(decode_part(body, 0), exchange.at) if body.count(".") == JWE_PARTS - 1 else ()


def _clocks(exchange: Exchange) -> Iterator[Clock]:
    for which, title in (("assertion", "client assertion"), ("proof", "DPoP proof")):
        issued_at = decode_part(_token_of(exchange, which), 1).get("iat")
        if isinstance(issued_at, int | float) and not isinstance(issued_at, bool):
            # iat is a whole number as a rule: what is lost by that is not a distance
            yield Clock(token=title, seconds=round(issued_at - int(exchange.at)))


def _command(exchange: Exchange) -> tuple[str, tuple[str, ...]]:
    """The request as a curl command, with variables for what works once."""
    used: dict[str, str] = {}
    query = f"?{exchange.query}" if exchange.query else ""
    url = _url(exchange) + query
    words = ["curl", "-i"] if exchange.method == "GET" else ["curl", "-i", "-X", exchange.method]
    if not _GLOB.isdisjoint(url):
        words.insert(1, "-g")
    found = [" ".join((*words, shlex.quote(url)))]
    for name, value in exchange.headers:
        if name in ("host", "content-length", "connection", "accept-encoding", "user-agent", "content-type"):
            continue
        if name == "dpop":
            found.append(f'-H "DPoP: {_variable("dpop", used)}"')
        else:
            found.append(f"-H {shlex.quote(f'{name}: {value}')}")
    if exchange.header("content-type").startswith("application/json"):
        found += [
            "-H 'content-type: application/json'",
            f"--data-raw {shlex.quote(exchange.body.decode('utf-8', 'replace'))}",
        ]
        return " \\\n  ".join(found), ()
    in_query = len(parse_qsl(exchange.query, keep_blank_values=True))
    for name, value in exchange.parameters[in_query:] if exchange.body else ():
        if name in _SINGLE_USE:
            found.append(f'--data-urlencode "{name}={_variable(name, used)}"')
        else:
            found.append(f"--data-urlencode {shlex.quote(f'{name}={value}')}")
    notes = tuple(
        f"${variable} stands for {what}, which works once: sign or get a new one" for variable, what in used.items()
    )
    return " \\\n  ".join(found), notes


def _variable(name: str, used: dict[str, str]) -> str:
    variable, what = _SINGLE_USE[name]
    used[variable] = what
    return f"${variable}"


def _compared(exchange: Exchange) -> dict[tuple[str, str], str]:
    """The values of a request that are compared with another's."""
    ignored = ("connection", "accept-encoding", "content-length", "host", "traceparent")
    found = {("parameter", name): value for name, value in exchange.parameters}
    found |= {("header", name): value for name, value in exchange.headers if name not in ignored}
    for which, title in _COMPARED:
        header, claims = decode_part(_token_of(exchange, which), 0), decode_part(_token_of(exchange, which), 1)
        found |= {(f"{title}, header", name): shorten_value(value) for name, value in header.items()}
        found |= {(f"{title}, claim", name): shorten_value(value) for name, value in claims.items()}
        if which != "access_token" and all(isinstance(claims.get(name), int) for name in ("iat", "exp")):
            found[title, "lifetime (exp - iat)"] = f"{claims['exp'] - claims['iat']} s"
            found[title, "clock (iat against ours)"] = _distance(claims["iat"] - int(exchange.at))
    scheme = exchange.header("authorization").partition(" ")[0]
    if scheme:
        found["header", "authorization scheme"] = scheme
    return found


def _distance(seconds: int) -> str:
    return "in step" if abs(seconds) <= _IN_STEP_SECONDS else f"{seconds:+} s"


def _differences(good: Exchange, exchange: Exchange) -> Iterator[Difference]:
    before, now = _compared(good), _compared(exchange)
    tokens = {title for _, title in _COMPARED}
    for where, name in dict.fromkeys((*before, *now)):
        whole = where.partition(",")[0]
        if whole in tokens and not all(any(each[0].startswith(whole) for each in side) for side in (before, now)):
            continue  # the header or parameter that holds the token is a difference already
        was, is_ = before.get((where, name)), now.get((where, name))
        if was == is_ or (name in _NEW_EACH_TIME and was is not None and is_ is not None):
            continue
        yield Difference(where=where, name=name, before=_side(name, was), now=_side(name, is_))


def _side(name: str, value: str | None) -> str:
    """The value of one side.

    What is new each time is only present or absent.
    """
    if value is None:
        return "absent"
    return "present" if name in _NEW_EACH_TIME else shorten_value(value)
