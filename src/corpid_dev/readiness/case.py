"""A readiness case: a fault, the expectations, and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid_dev.readiness.observation import Expectation
    from corpid_dev.readiness.sources import Source

FOREIGN: Final = "changed-by-corpid-rp-check"
"""a state, code or issuer that the relying party does not know"""
RESOURCE: Final = "resource"
"""in an order: the endpoint that the relying party reads roles from"""


class Alteration(Enum):
    """Changes to a callback on its way back."""

    NONE = auto()
    STATE = auto()
    NO_STATE = auto()
    ISS = auto()
    NO_ISS = auto()
    ERROR = auto()
    ERROR_WITH_FOREIGN_STATE = auto()
    CODE = auto()


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
    alteration: Alteration = Alteration.NONE
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
