"""Common parts of the pages about third parties (D56)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import grants
from corpid.rules.directory.objects import key_of, object_id
from corpid.texts import phrase
from corpid.web.directory.change_sentences import authorisation_sentence, parameters_in_words
from corpid.web.directory.page_context import frame, portal_path
from corpid.web.pages.layout import Link
from corpid.web.sites import CHANGED_MEANWHILE, NotFound

if TYPE_CHECKING:
    from corpid.flows.directory.grants import Authorisation, RoleOfGrant
    from corpid.rules.directory.records import ThirdPartyAssignment, ThirdPartyGrant
    from corpid.texts import Phrase
    from corpid.web.directory.page_context import PortalContext
    from corpid.web.pages.layout import Frame

THIRD_PARTIES: Final = "third-parties"
OFFER: Final = "third-parties/offer"
PER_PAGE: Final = 50
_ID_CHARACTERS: Final = 1000


def named(verb: str) -> re.Pattern[str]:
    """The paths of a page about one authorisation or role."""
    return re.compile(rf"third-parties/{verb}/([A-Za-z0-9_-]{{1,{_ID_CHARACTERS}}})")


def page_of(verb: str, record: ThirdPartyGrant | ThirdPartyAssignment) -> str:
    """The path of such a page in the portal."""
    return f"third-parties/{verb}/{object_id(record.key)}"


def url(at: PortalContext, verb: str, record: ThirdPartyGrant | ThirdPartyAssignment) -> str:
    """The address path of such a page."""
    return portal_path(at.web, page_of(verb, record))


async def authorisation(at: PortalContext) -> Authorisation:
    """The page's authorisation. Raises NotFound for one of others."""
    key = key_of(at.page.rpartition("/")[2], 6)
    if key is None:
        raise NotFound
    try:
        return await grants.find_authorisation(at.context.provider.registry, at.actor, key)
    except grants.NoGrant:
        raise NotFound from None


async def role(at: PortalContext) -> RoleOfGrant:
    """The page's role. Raises NotFound for one of others' people."""
    key = key_of(at.page.rpartition("/")[2], 7)
    if key is None or key[1] != at.entity.entity_id:
        raise NotFound
    try:
        return await grants.find_role(at.context.provider.registry, at.actor, key)
    except grants.NoGrant:
        raise NotFound from None


def version(at: PortalContext, record: msgspec.Struct) -> str:
    """A mark of a record as it is.

    A form carries that of the record which its page has shown.
    """
    return at.context.keys.mac("portal version", type(record).__name__, msgspec.json.encode(record).decode())[:27]


def check_version(at: PortalContext, record: msgspec.Struct) -> None:
    """Raise InvalidInput if the record has changed since it was shown."""
    if at.form.get("version", "") != version(at, record):
        raise InvalidInput(CHANGED_MEANWHILE)


def is_client(at: PortalContext, found: Authorisation) -> bool:
    """Return whether the entity is the one that granted it."""
    return found.grant.client_entity_id == at.entity.entity_id


def sentence(found: Authorisation, grant: ThirdPartyGrant | None = None) -> Phrase:
    """An authorisation in a sentence, with the terms of `grant` if given."""
    return authorisation_sentence(
        grant or found.grant,
        client=found.client_entity.name,
        third_party=found.third_party.name,
        service=found.service.name,
        has_roles=bool(found.service.roles),
    )


def facts(grant: ThirdPartyGrant | ThirdPartyAssignment) -> tuple[tuple[Phrase, str], ...]:
    """The terms that no sentence names."""
    pairs = (
        (phrase("Part of the organisation"), grant.sub_entity),
        (phrase("Reference"), grant.ref),
        (phrase("Only with"), parameters_in_words(grant.parameters)),
    )
    return tuple((name, text) for name, text in pairs if text)


def up(at: PortalContext, found: Authorisation | None = None, *, names: str = "") -> Frame:
    """The frame, with a link to the authorisation or the list.

    `names` as in `frame`.
    """
    to_list = Link(url=portal_path(at.web, THIRD_PARTIES), text=phrase("Third parties"))
    if found is None:
        return frame(at, section=THIRD_PARTIES, up=to_list, names=names)
    link = Link(url=url(at, "grant", found.grant), text=phrase("The authorisation"))
    return frame(at, section=THIRD_PARTIES, up=link, names=names)
