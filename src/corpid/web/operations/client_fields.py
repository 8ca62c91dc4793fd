"""Groups, labels and hints of a client's form.

Every member that an operator sets is in exactly one group; its kind follows from its declaration. Source: Spec 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.rules.oauth.generations import GENERATIONS
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.texts import Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a field."""

    label: Phrase
    hint: Phrase | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Fields with a common legend."""

    legend: Phrase
    members: dict[str, Words]
    rare: bool = False
    """whether most clients keep its defaults"""


GROUPS: Final[tuple[Group, ...]] = (
    Group(
        legend=phrase("Who it is"),
        members={
            "name": Words(label=phrase("Name"), hint=phrase("People see it when they sign in.")),
            "sector": Words(
                label=phrase("Sector"),
                hint=phrase("private: people are asked for consent before it receives their details."),
            ),
        },
    ),
    Group(
        legend=phrase("Addresses"),
        members={
            "redirect_uris": Words(
                label=phrase("Redirect URIs"),
                hint=phrase("Where people return after signing in, exactly as the client sends it. One a line."),
            ),
        },
    ),
    Group(
        legend=phrase("Keys"),
        members={
            "jwks_uri": Words(
                label=phrase("Address of its key set"),
                hint=phrase("Begins with https://. The client can then change its keys without asking you."),
            ),
            "jwks": Words(
                label=phrase("Or the key set itself"),
                hint=phrase("Public keys, as JSON. Fill in this or the address, not both."),
            ),
        },
    ),
    Group(
        legend=phrase("What it may ask for"),
        members={
            "scopes": Words(label=phrase("Scopes"), hint=phrase("One a line. openid is always needed.")),
            "services": Words(
                label=phrase("Services whose roles it reads"),
                hint=phrase(
                    "Identifiers, one a line. They decide which organisations people can choose; without any, people "
                    "can choose each of theirs."
                ),
            ),
        },
    ),
    Group(
        legend=phrase("Generation of the interface"),
        members={
            "generations": Words(
                label=phrase("Generations"),
                hint=phrase("One a line, of {names}. Leave it empty for the usual one.", names=", ".join(GENERATIONS)),
            ),
            "legacy_until": Words(
                label=phrase("Last day with legacy"),
                hint=phrase("As 2027-03-31. Required if legacy is one of its generations."),
            ),
        },
    ),
    Group(
        legend=phrase("What it receives"),
        rare=True,
        members={
            "subject": Words(
                label=phrase("Party in sub"),
                hint=phrase("user: the person. entity: the organisation that the person acts for."),
            ),
            "id_token_encryption_alg": Words(
                label=phrase("Key wrapping of ID tokens"),
                hint=phrase("Not set: as its encryption key says. key: the same, and with fapi2, too."),
            ),
            "id_token_encryption_enc": Words(label=phrase("Encryption of ID tokens")),
            "userinfo_signing_alg": Words(
                label=phrase("Signature of userinfo"), hint=phrase("Not set: as its generation says.")
            ),
            "userinfo_encryption_alg": Words(
                label=phrase("Key wrapping of userinfo"),
                hint=phrase(
                    "Empty: as its encryption key says. legacy encrypts only with ECDH-ES, RSA-OAEP or RSA-OAEP-256."
                ),
            ),
            "userinfo_encryption_enc": Words(
                label=phrase("Encryption of userinfo"),
                hint=phrase("Not set: userinfo is not encrypted. A128GCM and A128CBC-HS256 are for legacy only."),
            ),
            "stringified_blocks": Words(
                label=phrase("Blocks of userinfo as strings"),
                hint=phrase("Each block is a string that contains JSON, as older clients expect."),
            ),
        },
    ),
    Group(
        legend=phrase("Limits of its requests"),
        rare=True,
        members={
            "context_types": Words(
                label=phrase("Context types"),
                hint=phrase("Values of authentication_context_type that it may send, one a line."),
            ),
            "context_type_rule": Words(
                label=phrase("Whether requests name a context type"),
                hint=phrase("refused: for a client that only reads data."),
            ),
            "assurance_level": Words(
                label=phrase("Assurance level"), hint=phrase("The one of requests that name none: 2.")
            ),
            "pkce": Words(
                label=phrase("PKCE with legacy"), hint=phrase("optional: requests may leave out code_challenge.")
            ),
            "pkce_optional_until": Words(
                label=phrase("Last day of optional PKCE"),
                hint=phrase("As 2027-01-31. Empty: as long as it may use legacy."),
            ),
            "endpoint_audience_until": Words(
                label=phrase("Last day with the endpoint as audience"),
                hint=phrase(
                    "Until then aud of its assertions may be the URL of the endpoint. As 2026-12-31; not with fapi2."
                ),
            ),
            "issuers": Words(
                label=phrase("Issuers"),
                hint=phrase("Of this deployment, one a line. Empty: the first one."),
            ),
        },
    ),
)
WORDS: Final = {name: words for group in GROUPS for name, words in group.members.items()}
"""member → its words"""
