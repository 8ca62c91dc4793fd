"""Recognition of a session on a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from corpid_dev.readiness.observation import RelyingPartyPage

_NAMING: Final = frozenset(
    {"name", "entity_name", "CPUID_FullName", "CPEntID", "sub", "entity_reg_number", "identity_number"}
)
"""members of tokens that a page of a signed-in person is likely to show"""
_ROLE: Final = "CPRole"
SHORTEST: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """Signs of a session on a page.

    All that is given must hold.
    """

    url: str = ""
    """the beginning of the page's URL, or of its path"""
    text: str = ""
    heading: str = ""
    learned: bool = False

    def is_on(self, page: RelyingPartyPage) -> bool:
        """Return whether a page shows that somebody is signed in."""
        if page.is_error:
            return False
        at = page.url if "://" in self.url else urlsplit(page.url).path
        return at.startswith(self.url) and self.text in page.text and self.heading in ("", page.heading)

    def __str__(self) -> str:
        signs = {"the URL begins with": self.url, "the page shows": self.text, "the heading is": self.heading}
        holds = " and ".join(f"{what} “{value}”" for what, value in signs.items() if value)
        return f"{holds} (learned from the ordinary sign-in)" if self.learned else holds


def learned(
    signed_in: RelyingPartyPage, cancelled: RelyingPartyPage, claims: Iterable[Mapping[str, object]]
) -> Marker | None:
    """A marker that only the page of a successful sign-in shows.

    The page of a cancelled one does not. The heading is tried first, then a text of the tokens, then the URL. None if
    the pages do not differ in these; then an option must say what to look for.
    """
    if signed_in.is_error:
        return None
    if signed_in.heading and cancelled.heading and signed_in.heading not in cancelled.text + cancelled.heading:
        return Marker(heading=signed_in.heading, learned=True)
    for text in texts(claims, _NAMING):
        if len(text) >= SHORTEST and text in signed_in.text and text not in cancelled.text:
            return Marker(text=text, learned=True)
    path, other = urlsplit(signed_in.url).path, urlsplit(cancelled.url).path
    if path != other and not other.startswith(path):
        return Marker(url=path, learned=True)
    return None


def texts(claims: Iterable[Mapping[str, object]], names: frozenset[str]) -> list[str]:
    """The texts of members with these names, at any depth, each once."""
    return list(dict.fromkeys(text for each in claims for text in _found(each, names)))


def roles(
    claims: Iterable[Mapping[str, object]], page: RelyingPartyPage, cancelled: RelyingPartyPage
) -> frozenset[str]:
    """Roles of the tokens that only the signed-in person's page shows."""
    named = texts(claims, frozenset({_ROLE}))
    return frozenset(each for each in named if each in page.text and each not in cancelled.text)


def _found(value: Any, names: frozenset[str]) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _found(each, names)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name in names and isinstance(each, str):
                yield each
            else:
                yield from _found(each, names)
