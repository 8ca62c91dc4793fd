"""docs/reference/errors.md: the catalogue of refusals, from the declared reasons and errors."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, get_args

from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.refusals import Acts, ErrorCode, Reason
from corpid.web.pages.errors import RESOURCE_STATUS
from scripts.reference.claims import ORDER, shown
from scripts.reference.claims import recorded as recorded_exchanges
from scripts.reference.endpoints import endpoints
from scripts.reference.error_classes import CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_THE_CALLBACK: Final = frozenset(
    {
        "access_denied", "login_required", "interaction_required", "consent_required", "request_not_supported",
        "request_uri_not_supported",
    }
)  # fmt: skip
"""errors of the authorization endpoint that only a callback carries"""
OF_THE_HTTP_REQUEST: Final = (404, 405, 408, 413, 415, 421, 431, 501, 505)
"""the statuses of what is wrong with the HTTP request itself; docs/specification/errors.md and this page list them"""
OTHER_STATUSES: Final[dict[str, str]] = {
    "invalid_request": ", ".join(str(each) for each in OF_THE_HTTP_REQUEST if each != 421),  # it has a row of its own
    "temporarily_unavailable": "429",
}
"""error code → the statuses that it also has at every endpoint"""
_NOTES: Final[dict[str, str]] = {
    "invalid_request": f"{OTHER_STATUSES['invalid_request']} for what is wrong with the HTTP request",
    "temporarily_unavailable": f"{OTHER_STATUSES['temporarily_unavailable']} for too many requests",
    "invalid_request_uri": "in the callback if the redirect URI is known",
    "credentials_required": "the response has no error code",
    "misdirected_request": "the response says `invalid_request`",
}
"""error code → what its statuses do not say"""
_SOURCE: Final = re.compile(r"\s*\((?:RFC|OpenID|Spec)[^)]*\)\.?$")


def catalogue() -> str:
    """The tables, then every reason under the first of its errors, with a heading, and so an anchor, of its own."""
    example = shown(recorded_exchanges(ORDER[0].name)["exchanges"]["par error"]["response"]["body"])
    return f"\nRecorded at PAR:\n\n{example}\n{_errors()}\n{_by_actor()}{''.join(_of_error(error) for error in get_args(ErrorCode))}\n"


def statuses(error: str) -> str:
    """The HTTP statuses of an error, with the places where they differ."""
    if error in _IN_THE_CALLBACK:
        return "in the callback"
    if error not in CLASSES:
        return f"421; {_NOTES[error]}"
    usual = CLASSES[error].status
    others = [
        f"{each.statuses[error]} at PAR and token in {each.name}"
        for each in GENERATIONS.values()
        if each.statuses.get(error, usual) != usual
    ]
    others += [f"{RESOURCE_STATUS[error]} at resources"] if error in RESOURCE_STATUS else []
    others += [_NOTES[error]] if error in _NOTES else []
    return "; ".join([str(usual), *others])


def meaning(error: str) -> str:
    """The first sentence of what an error's class says."""
    first = (
        (CLASSES[error].__doc__ or "").partition("\n")[0] if error in CLASSES else "The host name is not served here."
    )
    return f"{_SOURCE.sub('', first.strip()).rstrip('.')}."


def _reasons(error: str) -> list[Reason]:
    return [reason for reason in Reason if reason.value.errors[0] == error]


def _errors() -> str:
    rows = "".join(
        f"| [`{error}`](#error-{error}) | {statuses(error)} | {meaning(error)} |\n" for error in get_args(ErrorCode)
    )
    return f"## Errors and their HTTP statuses\n\n| Error | Status | Meaning |\n|---|---|---|\n{rows}"


def _by_actor() -> str:
    rows = "".join(
        f"| {_capital(acts)} | {', '.join(_link(reason) for reason in Reason if reason.value.acts == acts)} |\n"
        for acts in Acts
    )
    return f"## Reasons by who must act\n\n| Who | Reasons |\n|---|---|\n{rows}"


def _link(reason: Reason) -> str:
    return f"[{reason.code}](#{reason.code})"


def _of_error(error: str) -> str:
    found = _reasons(error)
    return "".join(
        (f"\n## Error `{error}`\n\n{meaning(error)} Status: {statuses(error)}.\n", *map(_reason, found), *_also(error))
    )


def _also(error: str) -> Iterator[str]:
    also = [reason for reason in Reason if error in reason.value.errors[1:]]
    if also:
        yield f"\nAlso, at another endpoint or in another generation: {', '.join(map(_link, also))}.\n"


def _reason(reason: Reason) -> str:
    declared = reason.value
    others = ", ".join(f"`{error}`" for error in declared.errors[1:])
    also = f" Elsewhere the error is {others}." if others else ""
    return f"\n### {reason.code}\n\n{declared.cause}{also}{_places(reason)}\n\n*{_capital(declared.acts)}*: {declared.remedy}\n"


def _places(reason: Reason) -> str:
    """The endpoints at which it happens; nothing for what happens at each, or outside the protocol."""
    found = _where().get(reason, [])
    if not found or {"discovery"} & set(found):
        return ""
    titles = {each.name: each.title for generation in ORDER for each in endpoints(generation)}
    return f" At {', '.join(f'[{name}](endpoints.md#{_anchor(titles[name])})' for name in found)}."


@cache
def _where() -> dict[Reason, list[str]]:
    found: dict[Reason, list[str]] = {}
    for generation in ORDER:
        for endpoint in endpoints(generation):
            for reasons in endpoint.errors().values():
                for reason in reasons:
                    names = found.setdefault(reason, [])
                    names += [] if endpoint.name in names else [endpoint.name]
    return found


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
