"""Registration of clients: valid records, the generations they may use, and advice.

Advice is on what is allowed, and often a mistake.

Source: D8, D11, D21, D22, D27, D38
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from corpid.jose.encoding import JoseError, json_object
from corpid.jose.keys import (
    RSA,
    SMALLEST_BITS,
    WRAPS,
    ClientKeySet,
    KeySetError,
    key_set_members,
    parse_client_key_set,
    private_members,
)
from corpid.rules.oauth.acr import LEVELS
from corpid.rules.oauth.generations import GENERATIONS, SCOPES, Generation, Nesting
from corpid.rules.oauth.records import ALG_OF_KEY, CLIENT_MEMBERS, FIRST_ISSUER, Client
from corpid.rules.oauth.urls import InvalidUrl, check_public_url, check_redirect_uri, shorten_url

if TYPE_CHECKING:
    from corpid.rules.oauth.api_client import RegisteredApiClient

DEFAULT: Final = "APP_AUTHENTICATION_DEFAULT"
"""the authentication_context_type that a client may name unless its registration lists others (D11)"""

CONTEXT_TYPES: Final = frozenset(
    """
    APP_AUTHENTICATION_DEFAULT APP_PAYMENT_DEFAULT APP_ACCOUNT_PASSWORD_CHANGE_DEFAULT
    APP_ACCOUNT_PASSWORD_RESET_DEFAULT APP_ACCOUNT_DETAILS_CHANGE_DEFAULT APP_ONBOARDING_DEFAULT
    CPF_CHANGE_PAYMENT_MODE CPF_CHANGE_DAILY_WITHDRAWAL_LIMIT CPF_PROFILE_UPDATE CPF_LINK_BANK_ACCOUNT
    CPF_FUNDS_TRANSFER
    BANK_CASA_OPENING BANK_CASA_INITIAL_USAGE BANK_CARD_APPLICATION BANK_CARD_INITIAL_USAGE BANK_LOAN_APPLICATION
    BANK_ADD_LOCAL_RECEIPIENT BANK_ADD_OVERSEAS_RECIPIENT BANK_INCREASE_TRANSFER_LIMIT
    BANK_REPORT_FRAUD_SUSPICIOUS_ACTIVITY BANK_FUNDS_TRANSFER_LOCAL BANK_REMIT_MONEY_OVERSEAS BANK_REPORT_LOST_CARD
    BANK_CHANGE_NOTIFICATION_METHOD BANK_INCREASE_CREDIT_CARD_LIMIT BANK_REQUEST_CASH_ADVANCE
    BANK_INCREASE_INFLOW_OUTFLOW BANK_ACTIVATE_DORMANT_ACCOUNT BANK_LOGIN_NEW_DEVICE BANK_LOGIN_UNFAMILIAR_IP
    BANK_UPDATE_USER_INFORMATION BANK_NEW_DEVICE_REGISTRATION BANK_UNLOCK_MONEY_LOCK
    BANK_GOOGLE_PAY_APPLE_PAY_CARD_ONBOARDING
    FI_ACCOUNT_OPENING FI_LINK_BANK_ACCOUNT FI_INCREASE_TRANSFER_LIMIT FI_INCREASE_WITHDRAWAL_LIMIT
    FI_INITIATE_DEPOSIT
    TELCO_SIM_CARD_APPLICATION TELCO_SIM_CARD_ACTIVATION TELCO_CHANGE_ACCOUNT_DETAILS TELCO_ACTIVATE_ROAMING
    TELCO_CHANGE_NOTIFICATION_METHOD
    """.split()
)
"""every value that an operator can allow; the spelling is that of the wire, mistakes included (R-5.2)"""


_CLOSED_LISTS: Final[Mapping[str, Collection[str]]] = MappingProxyType(
    {
        **{each.name: each.words for each in CLIENT_MEMBERS.values() if each.words},
        "scopes": SCOPES,
        "generations": GENERATIONS,
        "context_types": CONTEXT_TYPES,
    }
)
"""member → the values that are implemented; nothing else can be registered"""
_AUDIENCE_UNTIL: Final = "endpoint_audience_until"
_LAST_DAYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        each.name: each.concerns
        for each in CLIENT_MEMBERS.values()
        if each.form == "day" and each.concerns and each.name != _AUDIENCE_UNTIL
    }
)
"""member that holds a last day → the field of the generations that have one"""


_SHARED_SECRET_ALGS: Final = ("A128KW", "A256KW", "dir")
"""published by the oldest generation, since the specification lists them (Spec 2.8)"""
_RESOURCES: Final = tuple(resource for generation in GENERATIONS.values() for resource in generation.resources)
USERINFO_ALGS: Final = tuple(dict.fromkeys(alg for resource in _RESOURCES for alg in resource.encryption_algs))
USERINFO_ENCS: Final = tuple(dict.fromkeys(enc for resource in _RESOURCES for enc in resource.encryption_encs))
_ALG: Final = "userinfo_encryption_alg"
_ENC: Final = "userinfo_encryption_enc"
_LOOPBACK: Final = "127.0.0.1"


class IssuerRules(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one issuer for registrations (D62)."""

    served: tuple[Generation, ...] = ()
    """the generations that it serves"""
    own_url: str = ""
    """its own, which no client may register to redirect to; empty: any may"""
    new_client: Mapping[str, object] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """what a new client gets whose first issuer this is: member of the record → value"""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the generations that it serves."""
        return tuple(generation.name for generation in self.served)

    @property
    def pushed(self) -> Generation | None:
        return next((generation for generation in self.served if generation.pushed), None)


class RegistrationRules(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a deployment that concern registrations."""

    developer_mode: bool = False
    """allows http on localhost and loopback addresses in redirect URIs"""
    any_key_url: bool = False
    """allows key URLs anywhere, and on http"""
    issuers: Mapping[str, IssuerRules] = msgspec.field(
        default_factory=lambda: MappingProxyType({FIRST_ISSUER: IssuerRules()})
    )
    """id of each issuer → its rules, the first one's first"""


PLAIN_RULES: Final = RegistrationRules()
_ENCRYPTED_USERINFO: Final = ("generations", "issuers", _ALG, _ENC)
"""the members on which it depends how userinfo is encrypted"""


class RegistrationFault(msgspec.Struct, frozen=True):
    """A fault of a registration: the member, and the reason."""

    member: str
    reason: str


class RegistrationError(Exception):
    """A client cannot be registered like this.

    `faults` lists everything that is wrong.
    """

    def __init__(self, faults: tuple[RegistrationFault, ...]) -> None:
        super().__init__("; ".join(f"{fault.member}: {fault.reason}" for fault in faults))
        self.faults = faults


class UnservedClient(NamedTuple):
    """The reason why no issuer of a client can serve it."""

    reason: str
    other: str
    """another issuer, which can; empty if none can"""


def register(client: Client, rules: RegistrationRules) -> tuple[str, ...]:
    """Check a registration.

    What comes back are remarks on its keys, for people.

    Raises RegistrationError with every fault. Spec 1, D8, D11, D21, D22, D27, D38.
    """
    faults = tuple(_faults(client, rules))
    if faults:
        raise RegistrationError(faults)
    return parse_client_key_set(client.jwks).problems if client.jwks else ()


def register_api_client(client: RegisteredApiClient, rules: RegistrationRules) -> tuple[str, ...]:
    """Check the registration of a client of the admin API.

    Its scopes and name were read by their declarations. What comes back are remarks on its keys, for people. Raises
    RegistrationError with every fault. Source: D8, D27, D59
    """
    faults = list(_key_source_faults(client))
    if client.jwks_uri is not None:
        faults += _url_fault("jwks_uri", client.jwks_uri, rules)
    keys = None
    if client.jwks is not None:
        try:
            keys = parse_client_key_set(client.jwks)
            faults += (*_signing_key_faults(keys), *_hidden_key_faults(client.jwks))
        except KeySetError as error:
            faults.append(RegistrationFault("jwks", str(error)))
    if faults:
        raise RegistrationError(tuple(faults))
    return keys.problems if keys else ()


def advise_on_registration(
    client: Client, key_set: Mapping[str, object] | None, rules: RegistrationRules
) -> tuple[RegistrationFault, ...]:
    """Advice on a client whose registration is allowed or nearly so.

    `key_set` is the pasted or fetched one, None if there is none. Source: D66
    """
    found = [
        *_advise_on_redirect_uris(client),
        *_advise_on_generations(client, rules),
        *_advise_on_scopes(client, rules),
        *_advise_on_address(client),
    ]
    return (*found, *(_advise_on_keys(client, key_set) if key_set is not None else ()))


def find_unserved_reason(client: Client, rules: RegistrationRules) -> UnservedClient | None:
    """Say why no issuer can serve a client; None if one can.

    Source: D62
    """
    own, known = [generation.name for generation in used_generations(client, rules)], issuers_of(client, rules)
    served = list(dict.fromkeys(name for issuer in known.values() for name in issuer.names))
    if not served or not set(own).isdisjoint(served):
        return None
    if len(rules.issuers) == 1:
        serving = "this deployment serves"
    else:
        serving = (
            f"its issuer {next(iter(known))} serves" if len(known) == 1 else f"its issuers {', '.join(known)} serve"
        )
    others = (name for name, issuer in rules.issuers.items() if not set(own).isdisjoint(issuer.names))
    return UnservedClient(
        f"it uses {', '.join(own) or 'pushed requests'}, and {serving} only {', '.join(served)}", next(others, "")
    )


def is_registered_at(client: Client, issuer_id: str) -> bool:
    """Return whether a client is registered at an issuer.

    A client that names no issuer belongs to the first one. Source: D62
    """
    return issuer_id in client.issuers if client.issuers else issuer_id == FIRST_ISSUER


def registered_generations(client: Client) -> str:
    """The generations of a client, in words for the log. Source: D28"""
    return " ".join(client.generations) or "the generation with pushed requests"


def serves(client: Client, generation: Generation, today: str) -> bool:
    """Return whether a client may use a generation.

    A client that names none may use the pushed one.

    `today` is YYYY-MM-DD in the deployment's time zone, and an end date the last day. Source: Spec
    "Generations"
    """
    if not client.generations:
        return generation.pushed
    if generation.name not in client.generations:
        return False
    return not generation.ends or (client.legacy_until is not None and today <= client.legacy_until)


def pkce_optional(client: Client, generation: Generation, today: str) -> bool:
    """Return whether a client may omit PKCE on a day.

    As for `serves`. Source: Spec "LEGACY without PKCE"
    """
    if not generation.pkce_optional or client.pkce != "optional" or not serves(client, generation, today):
        return False
    return client.pkce_optional_until is None or today <= client.pkce_optional_until


def used_generations(client: Client, rules: RegistrationRules) -> tuple[Generation, ...]:
    """The generations that a client is registered for, oldest first (Spec "Generations")."""
    named = tuple(generation for generation in GENERATIONS.values() if generation.name in client.generations)
    return named if named or client.generations else pushed_for(client, rules)


def issuers_of(client: Client, rules: RegistrationRules) -> dict[str, IssuerRules]:
    """The issuers of this deployment that know a client. Source: D62"""
    return {name: rules.issuers[name] for name in client.issuers or (FIRST_ISSUER,) if name in rules.issuers}


def pushed_for(client: Client, rules: RegistrationRules) -> tuple[Generation, ...]:
    """The pushed generations of the issuers that know a client, oldest first. Source: D62"""
    pushed = [issuer.pushed for issuer in issuers_of(client, rules).values()]
    return tuple(generation for generation in GENERATIONS.values() if generation in pushed)


def new_client(rules: RegistrationRules, fields: Mapping[str, object]) -> dict[str, object]:
    """The members of a new client: `fields`, and defaults by rule.

    An encryption of userinfo that would have no effect in the generations it names is left out. D22
    """
    named = fields.get("issuers")
    first = rules.issuers[FIRST_ISSUER]
    issuer = rules.issuers.get(str(named[0]), first) if isinstance(named, tuple | list) and named else first
    members = {**issuer.new_client, **fields}
    given = {name: members[name] for name in _ENCRYPTED_USERINFO if name in members}
    drafted = Client(client_id="", name="", redirect_uris=(), **given)  # type: ignore[arg-type]
    if _ENC not in fields and not _userinfo_nestings(drafted, used_generations(drafted, rules)):
        members.pop(_ENC, None)
    return members


def public_key_set(text: str) -> str:
    """A key set as it may be stored: without private members, compact.

    Text that is no key set returns as it is.

    RFC 7517 §9.3, D27.
    """
    try:
        decoded = key_set_members(text)
    except JoseError:
        return text
    stored = decoded.get("keys")
    if not isinstance(stored, list):
        return text
    keys = [public_key(key) if isinstance(key, dict) else key for key in stored]
    return msgspec.json.encode({**decoded, "keys": keys}).decode()


_PRIVATE: Final = re.compile(r"PRIVATE KEY|[\"'](?:d|k|p|q|dp|dq|qi|oth)\\?[\"']\s*:")
"""what a private key has, in text"""
_PRIVATE_TEXT: Final = re.compile(
    rf"{_PRIVATE.pattern}|(?i:private[ -](?:key|lines))"
    r"|(?<![\w.])(?:d|k|p|q|dp|dq|qi)[ \t]*[:=][ \t]*[\"']?[A-Za-z0-9_-]{16}"
)
"""the same in text that is no JSON, such as JavaScript, YAML or the file of another program"""
_MEMBERS_OF_KEYS: Final = frozenset({"kty", "crv", "x", "n"})
"""members by which an object is recognised as a key, perhaps an incomplete one"""


def public_part(text: str) -> str | None:
    """The public part of pasted keys, if some are private.

    None if none is private; empty if it cannot be told apart, as in text that is no key set. Source: RFC 7517 §9.3, D27
    """
    try:
        # `key_set_members` reads objects only.
        decoded = key_set_members(f'{{"keys":{text}}}' if text.lstrip().startswith("[") else text)
    except JoseError:
        return "" if _PRIVATE_TEXT.search(text) else None
    if not _has_private_key(decoded):
        return None
    public = public_key_set(msgspec.json.encode({"keys": decoded.get("keys", [decoded])}).decode())
    return "" if _has_private_key(json_object(public)) else public


def _has_private_key(decoded: dict[str, object]) -> bool:
    """Return whether a key with a private member is anywhere in it.

    A member with such a name that is not in a key does not count (D85).
    """
    listed = decoded.get("keys")
    if isinstance(listed, list) and any(private_members(key) for key in listed if isinstance(key, dict)):
        return True
    unchecked: list[object] = [decoded]
    while unchecked:
        value = unchecked.pop()
        if isinstance(value, dict):
            if not _MEMBERS_OF_KEYS.isdisjoint(value) and private_members(value):
                return True
            unchecked += value.values()
        elif isinstance(value, list):
            unchecked += value
        elif isinstance(value, str) and _PRIVATE.search(value):
            return True
    return False


PRIVATE_INSIDE: Final = "a private key is inside another member: paste public keys alone"


def _hidden_key_faults(text: str) -> Iterator[RegistrationFault]:
    """The fault of a key set with a hidden private key.

    The private members of its keys themselves are dropped.
    """
    if _has_private_key(json_object(public_key_set(text))):
        yield RegistrationFault("jwks", PRIVATE_INSIDE)


def public_key(key: dict[str, object]) -> dict[str, object]:
    """A key without its private members. Source: RFC 7517 §9.3"""
    private = private_members(key)
    return {member: value for member, value in key.items() if member not in private}


def _faults(client: Client, rules: RegistrationRules) -> Iterator[RegistrationFault]:
    if not client.redirect_uris:
        yield RegistrationFault("redirect_uris", "at least one is needed")
    for uri in client.redirect_uris:
        try:
            for issuer in rules.issuers.values():
                check_redirect_uri(uri, developer_mode=rules.developer_mode, own_url=issuer.own_url)
        except InvalidUrl as unfit:
            yield RegistrationFault("redirect_uris", f"{shorten_url(uri)}: {unfit}")
    yield from _url_faults(client, rules)
    yield from _key_faults(client, rules)
    for member, known in _CLOSED_LISTS.items():
        yield from _unknown_value_faults(member, getattr(client, member), known)
    yield from _issuer_faults(client, rules)
    yield from _ending_faults(client, rules)
    yield from _userinfo_encryption_faults(client, used_generations(client, rules))
    if "openid" not in client.scopes:
        yield RegistrationFault("scopes", "openid is always needed")
    if not client.context_types:
        yield RegistrationFault("context_types", "at least one is needed")
    if client.assurance_level not in LEVELS:
        yield RegistrationFault("assurance_level", f"{client.assurance_level} is not one of {_list_sorted(LEVELS)}")


def _issuer_faults(client: Client, rules: RegistrationRules) -> Iterator[RegistrationFault]:
    for name in sorted(GENERATIONS):
        if client.generations.count(name) > 1:
            yield RegistrationFault("generations", f"{name} is named more than once: once is enough")
    known = tuple(rules.issuers)
    for name in dict.fromkeys(client.issuers):
        if name not in known:
            yield RegistrationFault(
                "issuers", f"{shorten_url(name)!r} is no issuer of this deployment: choose from {', '.join(known)}"
            )
        elif client.issuers.count(name) > 1:
            yield RegistrationFault("issuers", f"{name} is named more than once: once is enough")


def _unknown_value_faults(
    member: str, registered: tuple[str, ...] | str | None, known: Collection[str]
) -> Iterator[RegistrationFault]:
    values = (registered,) if isinstance(registered, str) else registered or ()
    for value in values:
        if value not in known:
            yield RegistrationFault(member, f"{shorten_url(value)!r} is not one of {_list_sorted(known)}")


def _list_sorted(known: Iterable[object]) -> str:
    return ", ".join(sorted(str(value) for value in known))


def _ending_faults(client: Client, rules: RegistrationRules) -> Iterator[RegistrationFault]:
    """Faults of last days.

    A generation that ends needs its last day, and a day needs a generation that it concerns.
    """
    ending = [generation.name for generation in used_generations(client, rules) if generation.ends]
    if ending and client.legacy_until is None:
        yield RegistrationFault(
            "legacy_until", f"{ending[0]} is served until an end date only: name its last day, YYYY-MM-DD"
        )
    for member, concern in _LAST_DAYS.items():
        day = getattr(client, member)
        able = _list_sorted(generation.name for generation in GENERATIONS.values() if getattr(generation, concern))
        yield from _day_faults(member, day)
        if day is not None and not any(getattr(generation, concern) for generation in used_generations(client, rules)):
            yield RegistrationFault(
                member, f"no generation of this client has such a day: name {able} among them, or give no day"
            )
    if client.pkce_optional_until is not None and client.pkce != "optional":
        yield RegistrationFault("pkce_optional_until", "pkce is required: register pkce optional, or give no day")
    yield from _audience_faults(client, rules)


def _audience_faults(client: Client, rules: RegistrationRules) -> Iterator[RegistrationFault]:
    """Faults of the audience exception.

    There is none in a generation in which every client's assertions name the issuer.
    """
    member, day = _AUDIENCE_UNTIL, client.endpoint_audience_until
    yield from _day_faults(member, day)
    strict = [generation.name for generation in used_generations(client, rules) if not generation.endpoint_audience]
    if day is not None and strict:
        issuer = f"with {strict[0]} every client's assertions name the issuer alone as aud"
        yield RegistrationFault(member, f"{issuer}: give no day, or a client of other generations")
    if day is not None and not used_generations(client, rules):
        able = _list_sorted(generation.name for generation in GENERATIONS.values() if generation.endpoint_audience)
        yield RegistrationFault(member, f"this client is registered for no generation: name {able}, or give no day")


def _day_faults(member: str, day: str | None) -> Iterator[RegistrationFault]:
    if day is not None and not _is_day(day):
        yield RegistrationFault(member, f"{shorten_url(day)!r} is not a date: write a day that exists, YYYY-MM-DD")


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _url_faults(client: Client, rules: RegistrationRules) -> Iterator[RegistrationFault]:
    """The faults of every URL except redirect URIs."""
    for declared in CLIENT_MEMBERS.values():
        url = getattr(client, declared.name)
        if declared.form == "url" and isinstance(url, str) and url:
            yield from _url_fault(declared.name, url, rules)


def _url_fault(member: str, url: str, rules: RegistrationRules) -> Iterator[RegistrationFault]:
    try:
        check_public_url(url, anywhere=rules.any_key_url)
    except InvalidUrl as unfit:
        yield RegistrationFault(member, f"{shorten_url(url)}: {unfit}")


def _key_source_faults(client: Client | RegisteredApiClient) -> Iterator[RegistrationFault]:
    if (client.jwks is None) == (client.jwks_uri is None):
        yield RegistrationFault("jwks", "exactly one of jwks and jwks_uri is needed")


def _key_faults(client: Client, rules: RegistrationRules) -> Iterator[RegistrationFault]:
    yield from _key_source_faults(client)
    if client.jwks is not None:
        try:
            yield from _key_set_faults(client, rules, parse_client_key_set(client.jwks))
            yield from _hidden_key_faults(client.jwks)
        except KeySetError as error:
            yield RegistrationFault("jwks", str(error))


def _key_set_faults(client: Client, rules: RegistrationRules, keys: ClientKeySet) -> Iterator[RegistrationFault]:
    yield from _signing_key_faults(keys)
    remarks = _list_problems(keys)
    if keys.signing:
        yield from _algorithm_faults(client, rules, {key.verifier.algorithm.name for key in keys.signing})
    wrap = client.id_token_encryption_alg if client.id_token_encryption_alg in WRAPS else None
    encrypted = (
        wrap
        or client.id_token_encryption_alg == ALG_OF_KEY
        or any(generation.id_token_encrypted for generation in used_generations(client, rules))
    )
    fitting = f", a kid, and the alg {wrap} or none" if wrap else " and a kid"
    if encrypted and keys.encryption_for(wrap) is None:
        yield RegistrationFault(
            "jwks", f"no usable encryption key for ID tokens: an EC key with use enc{fitting} is needed{remarks}"
        )
        return
    for needed in _missing_userinfo_keys(client, used_generations(client, rules), keys):
        yield RegistrationFault("jwks", f"no usable encryption key for userinfo: {needed}{remarks}")


def _signing_key_faults(keys: ClientKeySet) -> Iterator[RegistrationFault]:
    """Faults of single keys, and of a set without one to sign."""
    yield from (RegistrationFault("jwks", fault) for fault in keys.faults)
    if not keys.signing:
        yield RegistrationFault(
            "jwks", f"no usable signing key: an EC key with use sig is needed{_list_problems(keys)}"
        )


def _list_problems(keys: ClientKeySet) -> str:
    return f" ({'; '.join(keys.problems)})" if keys.problems else ""


def _algorithm_faults(client: Client, rules: RegistrationRules, algorithms: set[str]) -> Iterator[RegistrationFault]:
    """Generations in which no key could sign the client's assertions."""
    for generation in used_generations(client, rules):
        if algorithms.isdisjoint(generation.assertion_algorithms):
            yield RegistrationFault(
                "jwks",
                f"no signing key for {generation.name}: client assertions are signed with "
                f"{' or '.join(generation.assertion_algorithms)} there, and the keys here are for {_list_sorted(algorithms)}",
            )


def _userinfo_encryption_faults(client: Client, generations: Sequence[Generation]) -> Iterator[RegistrationFault]:
    """Faults of userinfo encryption: invalid members, or members without effect."""
    alg, enc = client.userinfo_encryption_alg, client.userinfo_encryption_enc
    if alg in _SHARED_SECRET_ALGS and alg not in USERINFO_ALGS:
        reason = f"{alg} needs a shared secret, which no client has: name one of {', '.join(USERINFO_ALGS)}"
        yield RegistrationFault(_ALG, reason)
    elif alg is not None and alg not in USERINFO_ALGS:
        yield RegistrationFault(_ALG, f"{shorten_url(alg)!r} is not one of {', '.join(USERINFO_ALGS)}")
    elif alg is not None and enc is None:
        reason = f"it has no effect without {_ENC}: give one of {', '.join(USERINFO_ENCS)}, or no alg"
        yield RegistrationFault(_ALG, reason)
    elif enc in USERINFO_ENCS:
        yield from _ineffective_userinfo_encryption(alg, enc, generations)


def _ineffective_userinfo_encryption(
    alg: str | None, enc: str, generations: Sequence[Generation]
) -> Iterator[RegistrationFault]:
    resources = [(generation, resource) for generation in generations for resource in generation.resources]
    if not resources:
        return
    if alg is not None and not any(alg in resource.encryption_algs for _, resource in resources):
        able = [each.name for each in GENERATIONS.values() if any(alg in one.encryption_algs for one in each.resources)]
        reason = f"{alg} is not offered by a generation of this client, but by {', '.join(able)}"
        yield RegistrationFault(_ALG, f"{reason}: name another alg, or give none")
        return
    for generation, resource in resources:
        wanted = alg in resource.encryption_algs or resource.encrypted_by_enc
        if wanted and enc not in resource.encryption_encs:
            offered = ", ".join(resource.encryption_encs)
            yield RegistrationFault(_ENC, f"{enc} is not offered by {generation.name}: name one of {offered}")
            return
    if not any(resource.nesting(alg, enc) for _, resource in resources):
        generation, resource = resources[0]
        reason = f"it has no effect: {generation.name} encrypts {resource.name} only for a client with {_ALG}"
        remedy = f"name one of {', '.join(resource.encryption_algs)} there, or give no enc"
        yield RegistrationFault(_ENC, f"{reason}; {remedy}")


def _userinfo_nestings(client: Client, generations: Iterable[Generation]) -> set[Nesting]:
    """The encryption of responses to a client in these generations (D22)."""
    alg, enc = client.userinfo_encryption_alg, client.userinfo_encryption_enc
    found = (resource.nesting(alg, enc) for generation in generations for resource in generation.resources)
    return {nesting for nesting in found if nesting is not None}


def _missing_userinfo_keys(client: Client, generations: Iterable[Generation], keys: ClientKeySet) -> Iterator[str]:
    """Keys that a key set lacks to encrypt every response (D21, D22, D27)."""
    for alg in sorted({nesting.alg or "" for nesting in _userinfo_nestings(client, generations)}):
        if keys.encryption_for(alg or None) is not None:
            continue
        if not alg:
            yield "an EC key with use enc and a kid"
            continue
        kind = f"an RSA key of at least {SMALLEST_BITS} bits" if alg in RSA else "an EC key"
        yield f"{kind} with use enc, a kid, and the alg {alg} or none"


def _advise_on_redirect_uris(client: Client) -> Iterator[RegistrationFault]:
    name, every = "redirect_uris", set(client.redirect_uris)
    for uri in client.redirect_uris:
        if "#" in uri:  # that is refused
            continue
        try:
            parts = urlsplit(uri)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            continue
        if "*" in uri:
            yield RegistrationFault(
                name, f"{shorten_url(uri)}: a * stands for itself, not for other addresses: write each address out"
            )
        other = f"{uri}/" if not uri.endswith("/") else uri[:-1]
        if parts.path.endswith("/") and not parts.query and other not in every:
            yield RegistrationFault(
                name,
                f"{shorten_url(uri)} ends with a slash, and {shorten_url(other)} is another address: "
                "your requests must send it exactly like this",
            )
        if not parts.path:
            yield RegistrationFault(
                name,
                f"{shorten_url(uri)} has no path, and {shorten_url(other)} is another address: "
                "libraries often add the slash, so register what yours sends",
            )
        if host == "localhost":
            twin = uri.replace(parts.netloc, _LOOPBACK if port is None else f"{_LOOPBACK}:{port}", 1)
            if twin not in every:
                yield RegistrationFault(
                    name,
                    f"{shorten_url(uri)} and {shorten_url(twin)} are two addresses: register the one that your requests send. Prefer "
                    f"{_LOOPBACK}: a provider on localhost shares its cookies with every port there",
                )


def _advise_on_generations(client: Client, rules: RegistrationRules) -> Iterator[RegistrationFault]:
    if not used_generations(client, rules):
        ending = ", ".join(each.name for each in GENERATIONS.values() if each.ends)
        yield RegistrationFault(
            "generations",
            "its issuers serve no generation with pushed requests, and it names no other, so every request of it is refused: "
            f"name {ending}, and in legacy_until its last day",
        )
    elif found := find_unserved_reason(client, rules):
        remedy = f"add {found.other} to its issuers" if found.other else "change its generations"
        yield RegistrationFault("generations", f"it cannot be used so far: {found.reason}: {remedy}")


def _advise_on_scopes(client: Client, rules: RegistrationRules) -> Iterator[RegistrationFault]:
    own = used_generations(client, rules)
    for generation in own if client.scopes != _default_scopes(client, rules) else ():
        unknown = [each for each in client.scopes if each not in generation.scopes]
        if unknown:
            yield RegistrationFault(
                "scopes",
                f"{generation.name} does not have {', '.join(unknown)}: requests with it are refused there as invalid_scope",
            )
    if "authinfo" in client.scopes and not client.services:
        yield RegistrationFault(
            "services", "without a service userinfo has no roles: name the services whose roles it reads"
        )
    if (
        client.services
        and not all(each.unasked_scopes for each in own)
        and "authinfo" not in client.scopes
        and "tpauthinfo" not in client.scopes
    ):
        yield RegistrationFault(
            "scopes",
            f"it has services, but may request only {', '.join(client.scopes)}: name authinfo for roles, tpauthinfo for third parties",
        )


def _default_scopes(client: Client, rules: RegistrationRules) -> object:
    """The scopes of a client that names none, at its first issuer."""
    return next((issuer.new_client.get("scopes") for issuer in issuers_of(client, rules).values()), None)


def _advise_on_address(client: Client) -> Iterator[RegistrationFault]:
    if client.jwks_uri and client.jwks_uri.startswith("http://"):
        yield RegistrationFault(
            "jwks_uri", "outside developer mode the address begins with https:// and has a public host name"
        )


def _advise_on_keys(client: Client, key_set: Mapping[str, object]) -> Iterator[RegistrationFault]:
    name = "jwks_uri" if client.jwks_uri else "jwks"
    listed = key_set.get("keys")
    keys = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    kids = Counter(each["kid"] for each in keys if isinstance(each.get("kid"), str))
    for kid, times in kids.items():
        if times > 1:
            yield RegistrationFault(name, f"the kid {shorten_url(kid)!r} is there {times} times: give each key its own")
    for number, key in enumerate(keys, start=1):
        if key.get("use") == "sig" and "kid" not in key:
            yield RegistrationFault(
                name,
                f"key {number} has no kid: with one, and the same kid in the header of your assertions, "
                "you can change keys without an interruption",
            )
    points = {(str(key.get("crv")), str(key["x"])) for key in keys if key.get("use") == "sig" and "x" in key}
    for number, key in enumerate(keys, start=1):
        if key.get("use") == "enc" and (str(key.get("crv")), str(key.get("x"))) in points:
            yield RegistrationFault(
                name, f"key {number} signs and encrypts: make a key pair for each, so that one can be changed alone"
            )
