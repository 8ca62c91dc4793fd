"""What arrives at a redirect URI: a URL, and where a form was posted to it, the form's fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable


class Callback(str):
    """The URL that a browser came back to, fragment and all. `form` is None where nothing was posted."""

    __slots__ = ("form",)
    form: tuple[tuple[str, str], ...] | None

    def __new__(cls, url: str, form: Iterable[tuple[str, str]] | None = None) -> Self:
        """A callback by link, or with the fields that were posted; a callback stays what it is."""
        made = super().__new__(cls, url)
        given = url.form if isinstance(url, Callback) else None
        made.form = given if form is None else tuple(form)
        return made

    @property
    def address(self) -> str:
        """Scheme, host and path."""
        parts = urlsplit(self)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    def carried(self) -> dict[str, list[tuple[str, str]]]:
        """response_mode → the parameters that came this way (RFC 6749 §4.1.2, OAuth 2.0 Form Post Response Mode §2)."""
        parts = urlsplit(self)
        return {
            "query": parse_qsl(parts.query, keep_blank_values=True),
            "fragment": parse_qsl(parts.fragment, keep_blank_values=True),
            "form_post": list(self.form or ()),
        }

    @property
    def state(self) -> str:
        """The state that it carries, unverified; empty if there is none."""
        return next((value for pairs in self.carried().values() for name, value in pairs if name == "state"), "")
