"""What surrounds every page: one record beside what the page itself shows; the rules are those of `web.views`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

    from corpid.texts import Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Where a form of one button posts to. Fields: form_token, step."""

    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A way on: an address and the words that stand for it."""

    url: str
    text: Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What surrounds a page: who asks, who answers, how long, and the way out (D12, D15, D17)."""

    client_name: str | None = None
    message: str | None = None
    """authentication_context_message (D12)"""
    user_name: str | None = None
    """once the person is known"""
    entity: str | None = None
    """once it is chosen"""
    step: tuple[int, int] | None = None
    """this step and how many there are, e.g. (2, 3)"""
    step_name: str = ""
    """value of the hidden field `step`: the step that the page belongs to"""
    form_token: str = ""
    """value of the hidden field `form_token` (D35)"""
    cancel: Form | None = None
    """answers access_denied to the RP (D17)"""
    expires_at: datetime | None = None
    """when the sign-in ends, in the time zone of the deployment"""
    expires_in: int | None = None
    """the same in seconds from now, for the script that warns"""
    extend: Form | None = None
    """gives more time; None when no extension is left (D15)"""
    last_time: Phrase | None = None
    """says so where there is no more time after that"""
    under_way: bool = False
    """whether something is unfinished here: then the page leads nowhere else"""
    reason: Phrase | None = None
    """why the person has to sign in, where it does not go without saying"""
    up: Link | None = None
    """leads to the page above"""
    ui_locales: tuple[str, ...] = ()
    """the languages that the RP asks for, the best first (OpenID Connect Core §3.1.2.1)"""


BARE: Final = Frame()
"""of a page that belongs to nothing"""
