"""SCIM 2.0 over HTTP, by which a client provisions one entity's members.

scim2-server implements the protocol without input or output; input that it would load or parse without a limit is
bounded first. Loaded at the first request. Source: RFC 7644 §3, §3.12, D47, D60
"""

from __future__ import annotations

import re
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
from pydantic import ValidationError
from scim2_models import (
    BaseModel,
    ConflictException,
    Context,
    Error,
    ForbiddenException,
    InvalidSyntaxException,
    InvalidValueException,
    ListResponse,
    NotFoundException,
    NotImplementedException,
    PatchOp,
    PayloadTooLargeException,
    PreconditionFailedException,
    Resource,
    ResourceType,
    ResponseParameters,
    SCIMException,
    ScimFilter,
    SearchRequest,
    TooManyException,
    UniquenessException,
)
from scim2_server.errors import MethodNotAllowedException, UnsupportedMediaTypeException
from scim2_server.handler import AsyncScimHandler
from scim2_server.requests import ScimRequest
from scim2_server.responses import SCIM_MEDIA_TYPE, ScimResponse
from scim2_server.routing import ROUTES, Operation, Target, match_pattern
from scim2_server.service import ScimService, scim_exception_of
from scim2_server.storage import AsyncScimStorage, SearchPage
from starlette.responses import Response

from corpid.flows import rate_limits
from corpid.flows.directory import members, provisioning
from corpid.flows.directory.invitations import RETRY_SECONDS, InvitationLimit, TooManyInvitations
from corpid.flows.directory.members import LastOwner, UnknownMember, load_member, query_members
from corpid.flows.directory.provisioning import UnknownMembers
from corpid.flows.directory.write import IdentifierConflict, Refused
from corpid.rules import scim
from corpid.rules.directory.access import Forbidden, ProvisioningToken
from corpid.rules.directory.memberships import InvalidDetails, Member, MemberCondition, MemberQuery
from corpid.rules.directory.nodes import DirectoryError, json_value
from corpid.rules.directory.records import ChangedMeanwhile, Conflict, GroupRole, MemberDetails
from corpid.rules.fields import fields_of
from corpid.rules.limits import BODY_BYTES
from corpid.rules.oauth import tokens
from corpid.rules.oauth.errors import CredentialsRequired, InvalidToken, TemporarilyUnavailable
from corpid.rules.oauth.refusals import Reason
from corpid.rules.scim import LONGEST_PAGE, PROVIDER, FilterCondition, Group, MemberChanges, User, holds
from corpid.texts import capitalise
from corpid.web.context import SCIM_PATH, WebContext
from corpid.web.http.requests import client_request, encoding_fault, headers
from corpid.web.pages import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scim2_server.conditions import Conditions
    from starlette.requests import Request

    from corpid.flows.request_context import RequestContext

_ATTRIBUTES: Final = {each.name: each.scim for each in fields_of(MemberDetails).values()}


_EXPECTED: Final = {
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "an object"),
    "list_type": "a list",
    "string_type": "a text",
}
"""pydantic's type of an error → what is expected"""
SCHEME: Final = "Bearer"


class TooMany(SCIMException):
    """A daily limit was exceeded."""

    status = 429


def scim_error(error: Exception) -> SCIMException | None:
    """The SCIM error of an exception of rules or flows.

    None for errors of OAuth and for unforeseen ones. Source: RFC 7644 §3.12, D60
    """
    invalid = error if isinstance(error, ValidationError) else error.__cause__ or error.__context__
    if isinstance(error, SCIMException | ValidationError) and isinstance(invalid, ValidationError):
        # The first fault of a resource, in CorpID's words. The library's texts contain its own types and web address.
        fault = invalid.errors()[0]
        found = Error.from_validation_error(fault)
        if not fault["type"].startswith("scim_"):
            attribute = str(found.detail).removeprefix(fault["msg"]).removeprefix(": ") or "the body"
            expected = _EXPECTED.get(fault["type"]) or fault.get("ctx", {}).get("expected", "another value")
            found = found.model_copy(update={"detail": f"{attribute}: {expected} is expected here"})
        return SCIMException.from_error(found)
    if isinstance(error, SCIMException):
        return error
    return next((made(error) for kind, made in _ERRORS if isinstance(error, kind)), None)


def _taken(attribute: str) -> SCIMException:
    return UniquenessException(detail=f"Another user of this entity has this {attribute}")


def _malformed(error: Any) -> SCIMException:  # noqa: ANN401
    faults = (f"{_ATTRIBUTES.get(member, member)}: {sentence}" for member, sentence in error.faults)
    return InvalidValueException(detail="; ".join(faults))


_ERRORS: Final[Sequence[tuple[type[Exception], Callable[[Any], SCIMException]]]] = (
    (UnknownMember, lambda _: NotFoundException(detail="There is no such resource")),
    (UnknownMembers, lambda error: InvalidValueException(detail=f"members: {error}")),
    (IdentifierConflict, lambda error: _taken(_ATTRIBUTES[error.member])),
    (
        LastOwner,
        lambda _: ConflictException(detail="Without this user the entity would have no owner: appoint one first"),
    ),
    (
        ChangedMeanwhile,
        lambda _: PreconditionFailedException(detail="The resource has changed: read it again"),
    ),
    (Refused, lambda error: InvalidValueException(detail=capitalise(str(error)))),
    (Conflict, lambda error: ConflictException(detail=capitalise(str(error)))),
    (InvalidDetails, _malformed),
    (TooManyInvitations, lambda error: TooMany(detail=capitalise(str(error)))),
    (Forbidden, lambda error: ForbiddenException(detail=capitalise(error.reason))),
)
"""subclasses before their base"""


def response(request: Request, raised: Exception, web: WebContext) -> Response:
    """The answer to a refused request, which the log line names.

    Source: RFC 6750 §3, RFC 7644 §3.12, D28, D48
    """
    found = scim_error(raised)
    headers = {"Cache-Control": "no-store"}
    if found is None:
        error = errors.as_oauth_error(raised)
        errors.record(request, error)
        found = SCIMException(detail=capitalise(error.description))
        found.status = error.status
        if error.status == HTTPStatus.UNAUTHORIZED:
            error_member = "" if isinstance(error, CredentialsRequired) else f', error="{error.code}"'
            headers["WWW-Authenticate"] = f'{SCHEME} realm="{web.provider.policy.base_url}"' + error_member
        if isinstance(error, TemporarilyUnavailable):
            headers["Retry-After"] = str(error.retry_after)
    else:
        request.scope["state"]["log"]["detail"] = f"{HTTPStatus(found.status).phrase}: {found.scim_type or 'SCIM'}"
    if isinstance(raised, TooManyInvitations):
        headers["Retry-After"] = str(RETRY_SECONDS)
    if isinstance(found, MethodNotAllowedException):
        headers["Allow"] = ", ".join([*found.allowed, *(["HEAD"] if "GET" in found.allowed else [])])
    content = msgspec.json.encode(found.to_error().model_dump())
    return Response(content, found.status, headers, SCIM_MEDIA_TYPE)


_SEARCH: Final = ("filter", "sortBy", "sortOrder", "startIndex", "count", "attributes", "excludedAttributes")
_QUERY_FIELDS: Final = 100
_FILTER: Final = re.compile(r"(?<![^&])filter=[^&]*")


M = TypeVar("M", bound="BaseModel")
_ATTEMPTS: Final = 3
MOST_SHOWN: Final = 20_000
"""members of groups in one answer"""


_FURTHEST: Final = 10_000_000
"""the last place of a list that is looked up"""
_NOTHING: Final = "There is no such resource"


class _Path(NamedTuple):
    """The path of a route, without identifiers, for log and metrics (D48)."""

    path: str


async def answer(request: Request, web: WebContext) -> Response:
    """Answer one request.

    Raises SCIMException, and what admission and the flows raise. Source: RFC 7644 §3, D60
    """
    below = request.scope["path"].removeprefix(web.base_path + SCIM_PATH)
    request.scope["route"] = _Path(_pattern(below))
    context, actor = await _admit(request, web)
    if not below:
        raise NotFoundException(detail="There is no resource at the base URL itself: use /Users, /Groups or /Schemas")
    if "//" in below:
        raise NotFoundException(
            detail="There is no resource at a path with //: remove the slash at the end of the base URL"
        )
    if b"%2f" in request.scope.get("raw_path", b"").lower():
        raise NotFoundException(detail="There is no resource at a path with %2F")
    asked = ScimRequest(
        method="GET" if request.method == "HEAD" else request.method,
        base_url=web.provider.policy.base_url + SCIM_PATH,
        path=below,
        query=_query(request),
        headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.scope["headers"]],
        body=await _body(request),
    )
    if asked.body:
        await refuse_ended(context, actor)
    found = await Handler(SERVICE, Storage(context, actor, web)).handle(asked)
    return _response(found)


async def _admit(request: Request, web: WebContext) -> tuple[RequestContext, ProvisioningToken]:
    """Admit a request, before any other part of it is read.

    Raises CredentialsRequired, InvalidRequest, InvalidToken, TooManyRequests, TemporarilyUnavailable, StoreUnavailable.
    Source: RFC 6750 §2.1, RFC 7644 §2, D24, D47, D60
    """
    context = await client_request(request, web.provider)
    provider = context.provider
    await provider.rate_limits.address(rate_limits.SCIM, context.address, context.now, context.counts)
    text = tokens.access_token(headers(request, b"authorization"), SCHEME)
    actor = await provisioning.authenticate_token(provider.registry, text, now=int(context.now))
    if actor is None:
        raise InvalidToken(Reason.PROVISIONING_TOKEN, "the provisioning token is unknown, was revoked or has expired")
    request.scope["state"]["log"]["client_id"] = actor.token_id
    await provider.rate_limits.client(rate_limits.SCIM, actor.token_id, context.address, context.now, context.counts)
    await provider.registry_cache.refuse_maintenance(context.now)
    return context, msgspec.structs.replace(actor, request_id=context.request_id, address=context.address)


def _response(found: ScimResponse) -> Response:
    """The answer, which no cache may store."""
    content = b"" if found.body is None else msgspec.json.encode(found.body)
    headers = {**found.headers, "Cache-Control": "no-store"}
    media_type = headers.pop("Content-Type", None)
    return Response(content, int(found.status), headers, media_type if content else None)


def _pattern(below: str) -> str:
    segments = below.strip("/").split("/")
    known = (route.pattern for route in ROUTES if match_pattern(route.pattern, segments) is not None)
    pattern = next(known, "/...")
    for endpoint in ("Users", "Groups"):
        if segments[0] == endpoint:
            pattern = pattern.replace("{endpoint}", endpoint)
    return f"{SCIM_PATH}{pattern if '{endpoint}' not in pattern else '/...'}"


def _escape_plus(found: re.Match[str]) -> str:
    return found[0].replace("+", "%2B") if "%20" in found[0] else found[0]


def _query(request: Request) -> dict[str, str]:
    """The query parameters.

    A plus is a space, as in forms; in a filter whose spaces are %20 it is a plus (RFC 3986 §3.4). Raises
    InvalidValueException if a parameter is sent twice, since it is unknown which of the two was meant.
    """
    text = _FILTER.sub(_escape_plus, request.scope["query_string"].decode("latin-1"))
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_QUERY_FIELDS, errors="strict")
    except ValueError:
        raise InvalidValueException(detail="The query is not UTF-8, or has too many parameters") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found and name in _SEARCH:
            raise InvalidValueException(detail=f"The query parameter {name} can be sent only once")
        found[name] = value
    return found


async def _body(request: Request) -> bytes:
    whole = bytearray()
    async for piece in request.stream():
        whole += piece
        if len(whole) > BODY_BYTES:
            raise PayloadTooLargeException(
                detail=f"A body can have at most {BODY_BYTES:,} bytes here: send several requests"
            )
    if whole and (fault := encoding_fault(request)):
        raise UnsupportedMediaTypeException(detail=fault)
    return bytes(whole)


class GroupPatch:
    """The operations of a PATCH of a group, not yet applied."""

    def __init__(self, operations: list[dict[str, Any]]) -> None:
        self.operations: Final = operations


class Service(ScimService):
    """The protocol with our limits and our filters."""

    def authorize(self, request: ScimRequest, target: Target, resource_type: ResourceType) -> None:  # noqa: ARG002
        """Refuse creating or removing a group (D60)."""
        if resource_type.name == "Group" and target.operation.value in {"create", "delete"}:
            raise ForbiddenException(
                detail="A group is a role at a service, which CorpID's operator defines: you can change only its members"
            )

    def decode_body(self, body: bytes, content_type: str | None) -> Any:  # noqa: ANN401
        """The JSON of a body.

        The admin API reads JSON as strictly. Raises InvalidSyntaxException, UnsupportedMediaTypeException. Source:
        RFC 7493 §2
        """
        self.ensure_json(content_type)
        try:
            return json_value(body)
        except DirectoryError as error:
            raise InvalidSyntaxException(detail=f"The body cannot be read: {error.problems[0].reason}") from None

    def read_body(self, model: type[M], body: bytes, content_type: str | None, scim_ctx: Context) -> M:
        """A body as a resource.

        A user without `active`, or with null for it, keeps its value. The schema requires that attribute, so that no
        PATCH removes it, but a client need not send it. Raises SCIMException. Source: RFC 7643 §2.2, §2.5
        """
        content = self.decode_body(body, content_type)
        is_user = issubclass(model, User) and isinstance(content, dict)
        if is_user:
            content = {name: value for name, value in content.items() if name.lower() != "active" or value is not None}
        silent = is_user and "active" not in {name.lower() for name in content}
        try:
            read = model.model_validate({**content, "active": True} if silent else content, scim_ctx=scim_ctx)
        except ValidationError as error:
            raise scim_exception_of(error) from None
        return read.model_copy(update={"active": None}) if silent else read

    def publish(self, base_url: str, resource: Resource[Any]) -> Resource[Any]:  # noqa: ARG002
        """A resource as it is sent, which has its location."""
        return resource

    def search_response(
        self,
        base_url: str,
        resource_types: list[ResourceType],  # noqa: ARG002
        page: SearchPage,
        search_request: SearchRequest[Any],
    ) -> ScimResponse:
        """A page of resources (RFC 7644 §3.4.2).

        They are our own and are not validated again.
        """
        found = [
            self.publish(base_url, each).model_dump(
                scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=search_request
            )
            for each in page.resources
        ]
        body = {
            "schemas": [str(ListResponse.__schema__)],
            "totalResults": page.total,
            "startIndex": search_request.start_index,
            "itemsPerPage": len(found),
            "Resources": found,
        }
        return ScimResponse(HTTPStatus.OK, body)

    def read_response_parameters(
        self, resource_type: ResourceType, query: Mapping[str, str]
    ) -> ResponseParameters[Any]:
        """The attributes that an answer has.

        Raises InvalidValueException if the list is too long. Source: RFC 7644 §3.9, D47
        """
        _refuse_long(query)
        return super().read_response_parameters(resource_type, query)

    def read_search(self, resource_types: list[ResourceType], payload: Any) -> tuple[SearchRequest[Any], Any]:  # noqa: ANN401
        """A search that an index answers (RFC 7644 §3.4.2)."""
        if isinstance(payload, dict) and len(resource_types) == 1:
            kind = str(resource_types[0].name)
            _refuse_long(payload)
            text, sort = payload.get("filter"), payload.get("sortBy")
            if isinstance(text, str):
                scim.refuse_long(text)
                scim.conditions(kind, ScimFilter(text).ast)
            if isinstance(sort, str):
                scim.sorting(kind, sort)
        return super().read_search(resource_types, payload)

    def read_patch(self, resource_type: ResourceType, body: bytes, content_type: str | None) -> Any:  # noqa: ANN401
        """The operations of a PATCH, in the form of the standard (RFC 7644 §3.5.2)."""
        is_group = resource_type.name == "Group"
        operations = scim.operations(
            self.decode_body(body, content_type),
            most=scim.MOST_OF_GROUP if is_group else scim.MOST_OPERATIONS,
            most_values=scim.MOST_MEMBERS if is_group else scim.MOST_VALUES,
        )
        if is_group:
            return GroupPatch(operations)
        model: Any = PatchOp.__class_getitem__(self.get_model(resource_type))
        content: Any = {"schemas": [scim.PATCH_SCHEMA], "Operations": operations}
        try:
            return model.model_validate(content, scim_ctx=Context.RESOURCE_PATCH_REQUEST)
        except ValidationError as error:
            raise scim_exception_of(error) from None

    def patch_response(
        self, base_url: str, resource: Resource[Any], response_parameters: ResponseParameters[Any]
    ) -> ScimResponse:
        """The changed user; nothing for a group with its many members."""
        if isinstance(resource, Group):
            return super().patch_response(base_url, resource, response_parameters)
        return self.replacement_response(base_url, resource, response_parameters)


def _refuse_long(parameters: Mapping[str, Any]) -> None:
    for name in ("attributes", "excludedAttributes"):
        sent = parameters.get(name, "")
        listed = sent if isinstance(sent, list) else [sent]
        length = sum(len(each) + 1 for each in listed if isinstance(each, str))
        if length > scim.LONGEST:
            raise InvalidValueException(detail=f"{name} can have at most {scim.LONGEST:,} characters")


SERVICE: Final = Service(PROVIDER)
"""shared by every provider of this process: it has no state of a request"""


class Handler(AsyncScimHandler):
    """The operations of one request."""

    def __init__(self, service: Service, storage: Storage) -> None:
        super().__init__(service, storage)
        self._storage: Final = storage

    async def handle(self, request: ScimRequest) -> ScimResponse:
        """Answer a request.

        If another change came first, the request is run again on the changed record; a version that it names must be
        the new one. Raises SCIMException, and what the flows raise.
        """
        for _ in range(_ATTEMPTS - 1):
            with suppress(ChangedMeanwhile):
                return await self._handled(request)
        return await self._handled(request)

    async def _handled(self, request: ScimRequest) -> ScimResponse:
        response = await super().handle(request)
        target = self.service.match(request)
        if response.body is None or (target.endpoint or "").lower() != "groups":
            return response
        is_search = target.operation in {Operation.search, Operation.search_with_body}
        with self.service.provider:
            parameters = self._parameters(request, target.operation)
        if scim.wants("members", parameters):
            found = response.body.get("Resources", []) if is_search else [response.body]
            shown = await self._with_members(found, parameters)
            if is_search:
                response.body["Resources"] = shown
                response.body["itemsPerPage"] = len(shown)
        return response

    def _parameters(self, request: ScimRequest, operation: Operation) -> ResponseParameters[Any]:
        query = request.query
        if operation is Operation.search_with_body:
            query = self.service.decode_body(request.body, request.header("Content-Type"))
        return self.service.read_response_parameters(self.service.resource_type_at("Groups"), query)

    async def _with_members(
        self, groups: list[dict[str, Any]], parameters: ResponseParameters[Any]
    ) -> list[dict[str, Any]]:
        """The groups with their members, as many as have room.

        A page may be shorter than was asked for (RFC 7644 §3.4.2.4). Raises TooManyException if not even one has room.
        """
        left, shown = MOST_SHOWN, list[dict[str, Any]]()
        for each in groups:
            members = await self._storage.members_of(each["id"], parameters, most=left)
            if members is None and not shown:
                raise TooManyException(
                    detail=f"The group has more than {MOST_SHOWN:,} members: use excludedAttributes=members, and filter "
                    'Groups by id and members eq "…" to ask for one'
                )
            if members is None:
                break
            left -= len(members)
            if members:
                each["members"] = members
            shown.append(each)
        return shown

    async def patch_resource(
        self,
        resource_type: ResourceType,
        resource_id: str,
        patch_op: PatchOp[Any] | GroupPatch,
        conditions: Conditions,
    ) -> Resource[Any]:
        """Apply a PATCH; a group's adds and removes members."""
        if not isinstance(patch_op, GroupPatch):
            return await super().patch_resource(resource_type, resource_id, patch_op, conditions)
        current = cast("Group", await self.storage.get(resource_type, resource_id))
        self.service.check_preconditions(current, "PATCH", conditions)
        changes = scim.member_changes(current.id or "", current.display_name or "", patch_op.operations)
        await self._storage.change_group(resource_id, changes)
        return current

    async def replace_resource(
        self,
        resource_type: ResourceType,
        current: Resource[Any],
        replacement: Resource[Any],
        conditions: Conditions,
    ) -> Resource[Any]:
        """Apply a PUT; a group's replaces members, if it names some."""
        if not isinstance(replacement, Group):
            return await super().replace_resource(resource_type, current, replacement, conditions)
        self.service.check_preconditions(current, "PUT", conditions)
        if replacement.members is not None:
            ids = scim.member_ids([{"value": each.value} for each in replacement.members])
            await self._storage.change_group(current.id or "", scim.MemberChanges(add=tuple(ids), replaced=True))
        return current


class Storage(AsyncScimStorage):
    """The members and the groups of one entity, for one request."""

    def __init__(self, context: RequestContext, actor: ProvisioningToken, web: WebContext) -> None:
        self._context: Final = context
        self._registry: Final = context.provider.registry
        self._actor: Final = actor
        self._web: Final = web
        self._limit: Final = InvitationLimit.for_request(context)
        self._root: Final = context.provider.policy.base_url + SCIM_PATH
        self._read: Final[dict[str, Member]] = {}
        self._roles: dict[str, GroupRole] | None = None

    async def get(
        self,
        resource_type: ResourceType,
        resource_id: str,
        *,
        response_parameters: ResponseParameters[Any] | None = None,
    ) -> Resource[Any]:
        """One resource of the entity. Raises NotFoundException, and what the flow raises."""
        if resource_type.name == "Group":
            return scim.group(await self._role(resource_id), root=self._root)
        found = await self._member(resource_id)
        self._read[resource_id] = found
        return await self._user(found, with_groups=scim.asks("groups", response_parameters))

    async def search(
        self,
        resource_types: list[ResourceType],
        search_request: SearchRequest[Any],
        *,
        position: Any = None,  # noqa: ANN401, ARG002
    ) -> SearchPage:
        """A page of resources of one type.

        Raises SCIMException, and what the flow raises.
        """
        if len(resource_types) != 1:
            raise NotImplementedException(detail="Search at /Users or /Groups")
        kind = str(resource_types[0].name)
        text = search_request.filter
        conditions = scim.conditions(kind, text.ast) if text is not None else ()
        sort = scim.sorting(kind, str(search_request.sort_by or ""))
        descending = search_request.sort_order == "descending"
        start = (search_request.start_index or 1) - 1
        count = LONGEST_PAGE if search_request.count is None else search_request.count
        if kind == "Group":
            found = await self._groups(conditions, by_name=sort == "name", descending=descending)
            return SearchPage(
                total=len(found),
                resources=[scim.group(each, root=self._root) for each in found[start : start + count]],
            )
        with_groups = scim.asks("groups", search_request)
        total, page = await self._page(conditions, sort, start=start, count=count, descending=descending)
        users = [await self._user(each, with_groups=with_groups) for each in page]
        return SearchPage(total=total, resources=users)  # type: ignore[arg-type]

    async def _page(
        self,
        conditions: tuple[FilterCondition, ...],
        sort: scim.Attribute,
        *,
        start: int,
        count: int,
        descending: bool,
    ) -> tuple[int, list[Member]]:
        """The number of members that match, and a part of them.

        By id there is one at most.
        """
        named = [condition for condition in conditions if condition.attribute == "membership_id"]
        wanted = MemberQuery(
            entity_id=self._actor.entity_id,
            conditions=tuple(_condition(each) for each in conditions if each not in named),
            sorted_by="user_name" if sort == "user_name" else "membership_id",
            descending=descending,
            offset=min(start, _FURTHEST),
            limit=count,
        )
        if not named:
            return await query_members(self._registry, wanted, actor=self._actor)
        try:
            found = await self._member(str(named[0].value))
        except UnknownMember:
            return 0, []
        shown = await self._user(found)
        holding = all(scim.holds_of(shown, condition) for condition in conditions)
        return (1, [found][start : start + count]) if holding else (0, [])

    async def create(self, resource_type: ResourceType, resource: Resource[Any]) -> Resource[Any]:
        """Invite a member. Raises what the flow raises."""
        if not isinstance(resource, User):
            raise ForbiddenException(detail=f"A {resource_type.name} cannot be created with a token")
        written = scim.read_details(resource)
        invitation = members.plan_invitation(
            written.details, self._actor.entity_id, now=self._context.now, new_id=self._web.new_user_id,
            enabled=written.active is not False,
        )  # fmt: skip
        await members.write_members(
            self._registry, self._limit, [invitation], actor=self._actor, now=self._context.now, reachable=True
        )
        return await self._user(await self._member(invitation.record.membership_id))

    async def update(
        self,
        resource_type: ResourceType,  # noqa: ARG002
        resource: Resource[Any],
        *,
        expected_version: str | None = None,  # noqa: ARG002
    ) -> Resource[Any]:
        """Change a member that this request has read.

        Raises what the flow raises, ChangedMeanwhile too.
        """
        assert isinstance(resource, User)  # noqa: S101
        was = self._read[resource.id or ""]
        written = scim.read_details(resource, await self._user(was), was.membership)
        changed = await members.change_member(
            self._registry,
            self._limit,
            was.membership.membership_id,
            written.details,
            enabled=was.membership.enabled if written.active is None else written.active,
            expected=was.membership,
            actor=self._actor,
            now=self._context.now,
        )
        return await self._user(changed)

    async def delete(
        self,
        resource_type: ResourceType,  # noqa: ARG002
        resource_id: str,
        *,
        expected_version: str | None = None,  # noqa: ARG002
    ) -> None:
        """End a membership. Raises what the flow raises."""
        await members.end_member(self._registry, resource_id, actor=self._actor)

    async def change_group(self, group_id: str, changes: MemberChanges) -> None:
        """Give and take a role. Raises NotFoundException, and what the flow raises."""
        await provisioning.change_group(
            self._registry,
            await self._role(group_id),
            add=changes.add,
            remove=changes.remove,
            replaced=changes.replaced,
            today=self._context.today,
            actor=self._actor,
            still=lambda: refuse_ended(self._context, self._actor),
        )

    async def members_of(
        self, group_id: str, parameters: ResponseParameters[Any], *, most: int
    ) -> list[dict[str, str]] | None:
        """The members of a group as shown; None if too many."""
        role, today = await self._role(group_id), self._context.today
        found = await provisioning.list_group_members(
            self._registry, role, today=today, most=most + 1, actor=self._actor
        )
        return None if len(found) > most else [scim.member(each, self._root, parameters) for each in found]

    async def _member(self, membership_id: str) -> Member:
        return await load_member(self._registry, membership_id, actor=self._actor)

    async def _role(self, group_id: str) -> GroupRole:
        found = (await self._known()).get(group_id)
        if found is None:
            raise NotFoundException(detail=_NOTHING)
        return found

    async def _known(self) -> dict[str, GroupRole]:
        """The roles that are groups, by id, in order of their names."""
        if self._roles is None:
            found = await provisioning.list_groups(self._registry, actor=self._actor)
            self._roles = {scim.group_id(role): role for role in sorted(found, key=scim.group_name)}
        return self._roles

    async def _groups(
        self, conditions: tuple[FilterCondition, ...], *, by_name: bool, descending: bool
    ) -> list[GroupRole]:
        found = await self._known()
        for condition in conditions:
            if condition.attribute == "member":
                held = await self._groups_of(str(condition.value))
                found = {each: role for each, role in found.items() if role in held}
            elif condition.attribute == "name":
                found = {each: role for each, role in found.items() if holds(condition, scim.group_name(role))}
            else:
                found = {each: role for each, role in found.items() if holds(condition, each)}
        ordered = [found[each] for each in (found if by_name else sorted(found))]
        return ordered[::-1] if descending else ordered

    async def _groups_of(self, membership_id: str) -> frozenset[GroupRole]:
        try:
            found = await self._member(membership_id)
        except UnknownMember:
            return frozenset()
        return await provisioning.list_groups_of_member(
            self._registry, found.membership, today=self._context.today, actor=self._actor
        )

    async def _user(self, member: Member, *, with_groups: bool = False) -> User:
        groups = None
        if with_groups:
            held = await provisioning.list_groups_of_member(
                self._registry, member.membership, today=self._context.today, actor=self._actor
            )
            groups = [role for role in (await self._known()).values() if role in held]
        return scim.user(member.membership, member.user, groups, version=self._version(member), root=self._root)

    def _version(self, member: Member) -> str:
        """A weak entity tag of a member, without its groups.

        It is a MAC, since a client could search a hash for members that it does not see.
        """
        shown = msgspec.structs.replace(member.membership, invitation_sent_at=0)
        person = ("", "", "") if shown.invited else (member.user.user_name, member.user.name, member.user.email)
        canonical = msgspec.json.encode([shown, person], order="sorted").decode()
        return f'W/"{self._context.keys.mac("scim version", canonical)[:27]}"'


async def refuse_ended(context: RequestContext, actor: ProvisioningToken) -> None:
    """Refuse a token that has ended since the request was admitted.

    Its body may have taken long, and so may what it changes. Raises InvalidToken, StoreUnavailable. Source: D50, D60
    """
    provider = context.provider
    if not await provisioning.is_valid_still(provider.registry, actor, now=provider.clock()):
        raise InvalidToken(Reason.PROVISIONING_TOKEN, "the provisioning token was revoked or has expired")


def _condition(condition: FilterCondition) -> MemberCondition:
    value = condition.value
    text = value if isinstance(value, str) else str(value).lower()
    return cast("MemberCondition", (condition.attribute, condition.operator, text))
