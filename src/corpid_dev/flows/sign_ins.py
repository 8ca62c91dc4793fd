"""Sign-ins of test people without their factors, in developer mode (D66).

Two factors are simulated, and nothing else: the request, the interaction, the choice of the entity, consent and the
code are those of every sign-in. The audit says `simulated`.

Anybody acting for anything: a test person made for one sign-in (D66).

What they are is written with the keys of a directory file, and read by its readers. The same content makes the same
person again, so a request or a link that holds it can be used at any time.
"""

from __future__ import annotations

import uuid
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from corpid.flows.authentication import (
    browsers,
    completion,
    entity_selection,
    interaction_context,
    interactions,
    sessions,
    sign_in,
    throttle,
)
from corpid.flows.authentication.completion import AlreadyCompleted, OtherBrowser
from corpid.flows.authentication.sign_in import ConsentQuestion, EntityQuestion, NoEntity, SignInConfirmation, event
from corpid.flows.directory.apply import ApplyResult, apply_document
from corpid.flows.oauth import authorize
from corpid.flows.oauth.authorize import ImmediateResponse, InteractionRedirect
from corpid.jose.encoding import MalformedToken, base64url, from_base64url, json_object
from corpid.rules.audit import AuditAction
from corpid.rules.authentication.sign_in import SecondFactorMethod, SignInEvent, StaleStep
from corpid.rules.directory import names
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.records import Account, ListedTestPerson
from corpid.rules.oauth import acr, discovery, parameters
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.refusals import Reason
from corpid.texts import InvalidInput, phrase
from corpid_dev.flows.people import FILE, Developer, writing

if TYPE_CHECKING:
    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.access import DirectoryFile
    from corpid.rules.oauth.authorization_request import AuthorizationResponse

_REF: Final = "anybody"
"""of the grants that third-party rights need; they allow every role of their service"""
_MOST: Final = 100
"""rows of one person"""

Row = dict[str, Any]


class Anybody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person, the entity that they act for, and their rights.

    Rows are those of a directory file, without `user`, `entity` and `third_party`.
    """

    entity: str
    """identifier of the entity to act for"""
    person: Row = {}
    """keys of `users`; the name is made up if it is missing"""
    entities: dict[str, Row] = {}
    """entities that do not exist yet, by identifier"""
    roles: list[Row] = []
    """rows of `assignments`"""
    third_party: list[Row] = []
    """rows of `[[third_party.assignments]]`, with `client_entity`; what they need is granted"""

    @property
    def content(self) -> bytes:
        """The same bytes for the same content."""
        return msgspec.json.encode(self, order="sorted")

    @property
    def digest(self) -> bytes:
        """The digest of the content, which names the person."""
        return sha256(self.content).digest()

    @property
    def user_name(self) -> str:
        return f"anybody-{self.digest.hex()[:10]}"

    @property
    def name(self) -> str:
        return str(self.person.get("name") or f"Anybody {self.digest.hex()[:4].upper()}")


_SEPARATOR: Final = ";"
_IN_LINES: Final = frozenset({"client_entity", "service", "role", "sub_entity", "parameters"})
"""keys of rows that lines can hold; JSON holds every one"""


def rows_of(text: str, *names: str) -> list[Row]:
    """Read rows from lines of text.

    A line has its `names` first, in this order, then role and sub-entity, and parameters as `Name=Value` anywhere; a
    semicolon separates them. Source: D66
    """
    rows: list[Row] = []
    for line in filter(str.strip, text.splitlines()):
        parts = [part.strip() for part in line.split(_SEPARATOR)]
        plain = [part for part in parts if "=" not in part]
        row: Row = dict(zip((*names, "role", "sub_entity"), plain, strict=False))
        parameters: dict[str, list[str]] = {}
        for name, _, value in (part.partition("=") for part in parts if "=" in part):
            parameters.setdefault(name.strip(), []).append(value.strip())
        rows.append(
            {name: value for name, value in row.items() if value} | ({"parameters": parameters} if parameters else {})
        )
    return rows


def lines_of(rows: list[Row], *names: str) -> str | None:
    """Write rows as lines of text, None if lines cannot hold them. Source: D66"""
    lines = []
    for row in rows:
        parameters = row.get("parameters", {})
        if not row.keys() <= _IN_LINES or not isinstance(parameters, dict):
            return None
        plain = [str(row.get(name, "")) for name in (*names, "role", "sub_entity")]
        named = [
            f"{name}={value}"
            for name, values in parameters.items()
            for value in (values if isinstance(values, list) else [values])
        ]
        while plain and not plain[-1]:
            plain.pop()
        lines.append(f"{_SEPARATOR} ".join([*plain, *named]))
    text = "\n".join(lines)
    return text if rows_of(text, *names) == _plain(rows) else None


def _plain(rows: list[Row]) -> list[Row]:
    """The rows as lines hold them, with lists of texts as parameters."""
    listed = []
    for row in rows:
        found = {name: str(value) for name, value in row.items() if name != "parameters" and value != ""}
        parameters = {
            name: [str(value) for value in (values if isinstance(values, list) else [values])]
            for name, values in row.get("parameters", {}).items()
        }
        listed.append(found | ({"parameters": parameters} if parameters else {}))
    return listed


def encode_person(anybody: Anybody) -> str:
    """Write a person as text for an address. Source: D66"""
    return base64url(anybody.content)


def decode_person(text: str) -> Anybody | None:
    """Read a person from an address, None if it holds none. Source: D66"""
    try:
        return msgspec.convert(json_object(from_base64url(text)), Anybody)
    except (MalformedToken, msgspec.ValidationError):
        return None


async def make(context: RequestContext, developer: Developer, anybody: Anybody) -> str:
    """Write this person to the demo's directory, as a test person.

    Returns the user name. What exists stays as it is. Raises InvalidRequest if the content cannot be applied, or would
    change a record of somebody else. Source: docs/directory.md, D56, D66
    """
    if len(anybody.roles) + len(anybody.third_party) > _MOST:
        raise _unfit(f"anybody has more than {_MOST} rows")
    document = msgspec.json.encode(_document(anybody))
    actor = writing(document)
    try:
        planned = await _applied(context, actor, document, dry_run=True)
        changed = next((each.subject for each in planned.differences if each.sign != "+"), None)
        if changed is not None:
            raise _unfit(f"anybody would change a record that exists: {changed}")
        await _applied(context, actor, document)
    except DirectoryError as error:
        raise _unfit(f"anybody: {error.problems[0].reason}") from None
    context.provider.registry_cache.drop()
    developer.add([ListedTestPerson(user_name=anybody.user_name, name=anybody.name, entities=(anybody.entity,))])
    return anybody.user_name


async def _applied(
    context: RequestContext, actor: DirectoryFile, document: bytes, *, dry_run: bool = False
) -> ApplyResult:
    provider = context.provider
    return await apply_document(
        provider.registry,
        provider.passwords,
        document,
        file=FILE,
        actor=actor,
        new_user_id=lambda: str(uuid.uuid4()),
        dry_run=dry_run,
    )


def _document(anybody: Anybody) -> dict[str, object]:
    """The directory file that makes this person."""
    user_name, entity = anybody.user_name, anybody.entity
    user_id = str(uuid.UUID(bytes=anybody.digest[:16], version=4))
    granted = {(str(row.get("client_entity", "")), str(row.get("service", ""))) for row in anybody.third_party}
    grants = [
        {"client_entity": client_entity, "third_party": entity, "service": service, "ref": _REF}
        for client_entity, service in sorted(granted)
    ]
    person = {**anybody.person, "id": user_id, "name": anybody.name, "memberships": [entity]}
    sections: dict[str, object] = {
        "entities": anybody.entities,
        "users": {user_name: person},
        "assignments": [{**row, "user": user_name, "entity": entity} for row in anybody.roles],
        "third_party": {
            "grants": grants,
            "assignments": [{**row, "user": user_name, "third_party": entity} for row in anybody.third_party],
        },
    }
    if not anybody.entities:
        del sections["entities"]
    return sections


DEFAULT_WAY: Final = next(iter(acr.SIMULATED))
_STEPS: Final = 8
"""after the factors; a sign-in has fewer"""
_NAMED: Final = 10
"""organisations that a refusal names"""


class SimulatedSignIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sign-in without a browser: where it begins, and its person's answers."""

    authorize_url: str
    """the address to which the relying party would send the browser"""
    user: str = ""
    """user name of a test person"""
    anybody: Anybody | None = None
    """a person to be made, instead of a user name"""
    entity: str = ""
    """identifier of the entity to act for; not needed if there is one only"""
    way: str = DEFAULT_WAY
    """name of the way to sign in that amr claims"""
    consent: Literal["agree", "refuse"] = "agree"
    """the answer if consent is asked for"""
    orders: list[dict[str, Any]] = []
    """of the sandbox, for this sign-in"""


async def at_once(
    context: RequestContext, loaded: InteractionContext, developer: Developer, *, user_name: str, way: str = DEFAULT_WAY
) -> InteractionContext:
    """Complete both factors of a test person without asking for them.

    `way` names what amr then claims. Returns the updated context, with a new cookie value. Raises InvalidInput,
    StaleStep, OtherBrowser, FormHandled, AlreadyCompleted. Source: D15, D34, D54, D66
    """
    loaded.require(context, SignInEvent.SIMULATED)
    if way not in acr.SIMULATED:
        raise InvalidInput(phrase("Choose one of the ways to sign in."))
    account = await _account(context, developer, user_name)
    expected = loaded.renewing.user.user_id if loaded.renewing else ""
    if account is None or expected not in ("", account.user.user_id):
        raise InvalidInput(phrase("Choose one of the test people."))
    user, amr = account.user, acr.SIMULATED[way]
    async with context.provider.transient.batch(context.now) as batch:
        await browsers.note_form(context, batch, loaded.cookie, loaded.form)
    if loaded.knows():
        name, browser_key = names.user_name(user.user_name), loaded.browser.browser_key
        last = await throttle.last_entity(context, name, browser_key, user_id=user.user_id)
        loaded = replace(loaded, last_entity=last)
    entry = event(context, loaded, user, AuditAction.SIGN_IN_SIMULATE, "ok", amr=" ".join(amr))
    await context.provider.registry.audit.write(entry, now=context.now)
    shown = sessions.Authentication(account=account, amr=amr, way=SecondFactorMethod.SIMULATED)
    return await sessions.start_session(context, loaded, shown)


async def _account(context: RequestContext, developer: Developer, user_name: str) -> Account | None:
    """The account of an enabled test person, None for anybody else."""
    if not developer.is_test_person(user_name):
        return None
    account = await context.provider.registry.factors.account_by_name(names.user_name(user_name))
    return account if account is not None and account.user.enabled else None


async def without_browser(
    context: RequestContext, developer: Developer, asked: SimulatedSignIn
) -> AuthorizationResponse:
    """Answer an authorization request as a test person's browser would.

    Returns what the relying party receives at its redirect URI, which may be a refusal. Raises InvalidRequest if the
    sign-in cannot be carried out, before the request is used up; and the errors of `authorize.arrive`. Source: D40, D66
    """
    if asked.way not in acr.SIMULATED:
        raise _unfit(f"way is none of: {', '.join(acr.SIMULATED)}")
    if (asked.anybody is None) == (not asked.user):
        raise _unfit("either user or anybody must be there, and not both")
    query = _query(context, asked)
    if asked.anybody is not None:
        user_name = await make(context, developer, asked.anybody)
        asked = msgspec.structs.replace(asked, user=user_name, entity=asked.entity or asked.anybody.entity)
    account = await _account(context, developer, asked.user)
    if account is None:
        raise _unfit("user is not the user name of a test person of this demo")
    arrived = await authorize.arrive(context, query, cookie=None, may_complete=True)
    if isinstance(arrived, ImmediateResponse):
        return arrived.response
    loaded = await _load_first(context, arrived)
    await _require_entity(context, loaded, account, asked.entity)
    try:
        loaded = await at_once(context, loaded, developer, user_name=asked.user, way=asked.way)
        loaded = await _to_the_end(context, loaded, asked)
    except (AlreadyCompleted, OtherBrowser, StaleStep):
        raise InvalidRequest(
            Reason.SIGN_IN_IN_ANOTHER_BROWSER, "this request is being answered in a browser: start a new one"
        ) from None
    return await completion.leave(context, loaded.interaction)


def _unfit(description: str) -> InvalidRequest:
    return InvalidRequest(Reason.SIMULATION, description)


def orders_of(asked: SimulatedSignIn) -> list[dict[str, Any]]:
    """The sandbox's orders for this sign-in, named by its request.

    Raises InvalidRequest if one names another. Source: D66
    """
    query = parameters.parse(
        asked.authorize_url.partition("?")[2].partition("#")[0].encode("ascii", "replace"),
        {"client_id", "request_uri", "state"},
    )
    own = {"client_id": query.get("client_id"), "sign_in": query.get("request_uri") or query.get("state")}
    for each in asked.orders:
        if not own.keys().isdisjoint(each):
            raise _unfit("orders: leave client_id and sign_in out, they are those of this sign-in")
    return [{**each, **own} for each in asked.orders]


def _query(context: RequestContext, asked: SimulatedSignIn) -> bytes:
    """The query of an address of this issuer's authorization endpoint."""
    endpoint = context.provider.policy.base_url + discovery.AUTHORIZATION_PATH
    address, _, query = asked.authorize_url.partition("?")
    if address != endpoint or not query.isascii():
        raise _unfit(
            f"authorize_url must be {endpoint} with the query of an authorization request; "
            "each further issuer takes its own at /developer/sign-ins under its URL"
        )
    return query.partition("#")[0].encode()


async def _load_first(context: RequestContext, entered: InteractionRedirect) -> InteractionContext:
    """The first context of a browser that keeps every cookie."""
    interaction_id, cookie = entered.interaction_id, entered.cookie
    if entered.held:
        brought = await interactions.find_pending(context, interaction_id, cookie=cookie, held=entered.held)
        if brought is not None:
            await interactions.store_pending(context, *brought)
    return await interaction_context.load_interaction(context, interaction_id, cookie)


async def _require_entity(
    context: RequestContext, loaded: InteractionContext, account: Account, entity_id: str
) -> None:
    """Refuse an entity that the person could not choose.

    Without any usable entity the sign-in itself ends with access_denied.
    """
    user_id, client = account.user.user_id, loaded.client
    offer = await entity_selection.offer(context, user_id, client, query="", preselected="")
    usable = [each.entity.entity_id for each in offer.choices if each.usable]
    known = ", ".join(usable[:_NAMED]) + (" and more" if len(usable) > _NAMED else "")
    if entity_id:
        if await entity_selection.usable_here(context, user_id, entity_id, client) is None:
            raise _unfit(f"entity is none that this person can act for at this client: {known or 'there is none'}")
        return
    if usable and not await entity_selection.find_only_entity(context, user_id, client, loaded.interaction.request):
        raise _unfit(f"entity is missing, and the person would be asked to choose: {known}")


async def _to_the_end(
    context: RequestContext, loaded: InteractionContext, asked: SimulatedSignIn
) -> InteractionContext:
    """Answer every page after the factors, as asked."""
    for _ in range(_STEPS):
        if loaded.interaction.outcome is not None:
            return loaded
        loaded = await interaction_context.load_interaction(context, loaded.interaction.interaction_id, loaded.cookie)
        match await sign_in.current(context, loaded):
            case EntityQuestion():
                loaded = await sign_in.submit_entity(context, loaded, entity_id=asked.entity)
            case ConsentQuestion() if asked.consent == "agree":
                loaded = await sign_in.submit_consent(context, loaded)
            case ConsentQuestion() | NoEntity():
                loaded = await sign_in.cancel(context, loaded)
            case SignInConfirmation():
                loaded = await sign_in.confirm(context, loaded)
            case _:
                raise StaleStep
    raise StaleStep


def refusal(response: AuthorizationResponse) -> tuple[str, str] | None:
    """The error code and the reason of a response.

    None for a response with a code. Source: D28
    """
    return (response.error, response.reason) if response.error else None
