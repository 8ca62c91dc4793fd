"""Commands on records, made from their resources.

They list, show, add, update, remove, enable and disable records. A noun says how its records are listed and shown.
Arguments follow from the identity of its resource, options from the other members. A noun with further commands has a
module of its own, which adds them.
"""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
import typer

from corpid.cli import listing, output
from corpid.cli.running import with_stores
from corpid.flows.directory import appointments, approvals, lists, members, person_records, single_records
from corpid.flows.directory.finding import find_user
from corpid.rules.directory import member_details
from corpid.rules.directory.differences import difference, to_text
from corpid.rules.directory.lists import ENTITIES, GRANTS, MOST_COUNTED, SERVICES, USERS, RecordList
from corpid.rules.directory.objects import MEMBERSHIP
from corpid.rules.directory.records import Change, Entity, User
from corpid.rules.directory.roles import RoleRecords, last_day, reasons
from corpid.rules.directory.values import ALL, NO_BEGINNING, NO_END
from corpid.rules.fields import NOTHING
from corpid.rules.oauth.api_client import API_CLIENT_MEMBERS, RegisteredApiClient
from corpid.rules.oauth.records import CLIENT_MEMBERS
from corpid.settings.issuers import client_rules

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from corpid.cli.output import Lines
    from corpid.engines import Stores
    from corpid.flows.directory.apply import ApplyResult
    from corpid.flows.directory.lists import Appointment, Belonging, EntityMember, ListPage
    from corpid.flows.directory.members import Member
    from corpid.flows.directory.single_records import NamedRecord
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.objects import Resource
    from corpid.rules.directory.records import OperatorLevel
    from corpid.rules.directory.sections import Kind
    from corpid.rules.oauth.records import Client, ClientMember, MemberForm
    from corpid.settings import Settings
    from corpid.stores.sql.registry import Registry

LEVELS: Final = {"owner": "owner", "administrator": "administrator", "sub_administrator": "sub-administrator"}
_MEMBER_STATES: Final = {
    "invited": "invited", "suspended": "membership disabled", "locked": "disabled", "active": "enabled",
}  # fmt: skip
_ARGUMENTS: Final = {
    "user": ("USER", "The person's user name."),
    "user_name": ("USER", "The person's user name."),
    "entity": ("ENTITY", "The entity's identifier."),
    "entity_id": ("ENTITY", "The entity's identifier, at most 10 characters."),
    "client_entity": ("ENTITY", "The entity that lets the other one act for it."),
    "third_party": ("THIRD_PARTY", "The entity that acts for the first one."),
    "service": ("SERVICE", "The service's identifier."),
    "service_id": ("SERVICE", "The service's identifier."),
    "client_id": ("CLIENT_ID", "The client's identifier."),
}
"""members of an identity that every command needs: metavar and help"""
_SELECTORS: Final = {
    "role": "Only this role; '' is the one without a name.",
    "sub_entity": "Only for this part of the entity; '' is the one for the whole, or for any.",
    "ref": "Only the one with this ref; '' is the one without.",
}
"""members of an identity that are named where several records differ in them"""
_OPTION_NAMES: Final = {"start_date": "start", "end_date": "end", "entity_statuses": "entity_status"}
_EMPTY: Final = ("", (), NO_BEGINNING, NO_END)
"""defaults to which `none` takes a member back"""
FILTERS: Final = {
    "user": ("NAME", "Only of this person."),
    "entity": ("ID", "Only of this entity."),
    "service": ("ID", "Only at this service."),
    "client_entity": ("ID", "Only what this entity grants."),
    "third_party": ("ID", "Only what is granted to this entity."),
    "search": ("TEXT", "Words of people and entities, in any order; else the beginning of the identifier."),
    "name": ("TEXT", "As --search, sorted by name."),
    "deletion_requested": ("", "Only people who asked to be deleted, by identifier."),
    "people": ("", "The roles of third parties' people instead."),
}
"""options of lists; a flag has no metavar"""
_ADMINISTRATORS_SHOWN: Final = 10
Load: TypeAlias = "Callable[[Stores, dict[str, str], str, int], Awaitable[ListPage[Any]]]"
Command: TypeAlias = "tuple[list[inspect.Parameter], Callable[..., None]]"


class View(NamedTuple):
    """The settings and day under which records are shown."""

    chosen: Settings
    today: str

    def moment(self, at: int) -> str:
        """A moment in the deployment's zone, which it names."""
        return f"{listing.moment(at, self.chosen)} ({self.chosen.timezone})"


class ListCommand(NamedTuple):
    """A list: its title, its options, how it is read and shown."""

    title: str
    name: str
    """of the records in JSON"""
    options: tuple[str, ...]
    """filters that narrow it"""
    load: Load
    columns: dict[str, str | Callable[[Any, View], Lines]]
    """heading → member of its JSON, or what makes a cell"""
    data: Callable[[Any, View], Any] = lambda record, _: record
    """what JSON shows"""
    chosen_by: tuple[str, ...] = ()
    """the options that choose it"""
    none: str = ""
    """a sentence instead of an empty list"""

    def row(self, record: Any, view: View) -> tuple[Lines, ...]:  # noqa: ANN401
        """The cells of a record."""
        members = to_members(self.data(record, view))
        cells = (members[each] if isinstance(each, str) else each(record, view) for each in self.columns.values())
        return tuple(each if isinstance(each, str | tuple) else to_text(each) for each in cells)


class Details(NamedTuple):
    """One record in full."""

    load: Callable[[Stores, NamedRecord], Awaitable[Any]]
    data: Callable[[Any, View], Any] | None = None
    """None: as its list shows it"""
    values: Callable[[Any], dict[str, Lines]] | None = None
    """for people; None: the members of its JSON"""
    note: str = ""
    """a sentence after it"""


class Noun(NamedTuple):
    """A kind of record as commands name it."""

    kind: Kind
    texts: dict[str, str]
    """command → docstring; each is made"""
    lists: tuple[ListCommand, ...] = ()
    """the first one if no option chooses another"""
    details: Details | None = None
    defaults: Mapping[str, str] = MappingProxyType({})
    """of members that a new record has to have"""
    implied: Callable[[dict[str, object]], dict[str, object]] = dict
    """the members of a new record, with those that follow from others"""
    positional: tuple[str, ...] = ()
    """members that `add` takes as arguments"""
    needs: tuple[str, ...] = ()
    """options that `list` cannot do without"""

    @property
    def resource(self) -> Resource:
        return single_records.BY_KIND[self.kind]

    @property
    def identity(self) -> tuple[str, ...]:
        return self.resource.identity or ("user_name",)

    @property
    def keyed(self) -> bool:
        """True if its records have an identifier of their own."""
        return len(self.identity) == 1 and self.kind != "operator"


class MemberOption(NamedTuple):
    """An option, or argument, that sets a member."""

    member: str
    parameter: inspect.Parameter
    read: Callable[[Any], object]


def register(
    app: typer.Typer, name: str, text: str, parameters: Iterable[inspect.Parameter], work: Callable[..., None]
) -> None:
    """Add a command that calls `work` with what it was given."""

    def command(**given: Any) -> None:  # noqa: ANN401 - as typer reads the annotations
        work(**given)

    command.__signature__ = inspect.Signature(sorted(parameters, key=lambda each: each.kind))  # type: ignore[attr-defined]
    command.__doc__ = text
    app.command(name)(command)


def argument(name: str, metavar: str, text: str, default: object = inspect.Parameter.empty) -> inspect.Parameter:
    """A positional parameter of a command."""
    annotated = str if default is inspect.Parameter.empty else str | None
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=default,
        annotation=Annotated[annotated, typer.Argument(metavar=metavar, help=text)],
    )


def option(
    name: str,
    annotated: Any,  # noqa: ANN401
    text: str,
    *names: str,
    metavar: str | None = None,
    default: object = None,
) -> inspect.Parameter:
    """An option of a command."""
    kind = annotated if default is inspect.Parameter.empty else annotated | None
    info = typer.Option(*(names or [f"--{name.replace('_', '-')}"]), metavar=metavar, help=text)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])


def flag(name: str, annotated: Any, default: object = False) -> inspect.Parameter:  # noqa: ANN401
    """An option whose annotation says everything."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotated)


DRY_RUN: Final = flag("dry_run", listing.DryRun)
JSON: Final = flag("json", listing.AsJson)
LIMIT: Final = flag("limit", listing.Limit, listing.DEFAULT)
AFTER: Final = flag("after", listing.After, "")


def own_arguments(noun: Noun) -> list[inspect.Parameter]:
    """The arguments that every command on one record takes."""
    return [argument(name, *_ARGUMENTS[name]) for name in noun.identity if name in _ARGUMENTS]


def identity_parameters(noun: Noun) -> list[inspect.Parameter]:
    """Arguments and options that name one record."""
    return own_arguments(noun) + [option(name, str, _SELECTORS[name]) for name in noun.identity if name in _SELECTORS]


def member_options(noun: Noun, *, new: bool) -> list[MemberOption]:
    """Options for the members of a record.

    A new one has also those of its identity; switches and states have commands of their own.
    """
    if noun.kind == "client":
        return [_client_option(each, new=new) for each in CLIENT_MEMBERS.values() if each.member.help]
    left_out = {"enabled", "state", *(_ARGUMENTS if new else noun.identity)}
    return [_member_option(noun, name, new=new) for name in noun.resource.keys if name not in left_out]


def read_members(options: list[MemberOption], given: dict[str, Any]) -> dict[str, object]:
    """Take the members that options set out of `given`."""
    return {each.member: each.read(given.pop(each.parameter.name)) for each in options}


def _member_option(noun: Noun, name: str, *, new: bool) -> MemberOption:
    key, schema = noun.resource.keys[name], noun.resource.properties[name]
    form = schema.get("type", "list")
    is_listed = form in {"array", "object", "list"}
    empties = not new and key.default in _EMPTY
    called = _OPTION_NAMES.get(name, name.removesuffix("s") if is_listed else name)
    text = f"{key.help.removesuffix('.')}; repeat." if is_listed and key.help else key.help
    if not is_listed and (words := [word for word in schema.get("enum", ()) if word]):
        text = f"{text.removesuffix('.')}{': ' if text else ''}{', '.join(words[:-1])} or {words[-1]}."
    if empties:
        text += " none empties the list." if is_listed else " none removes it."
    needed = noun.defaults.get(name, inspect.Parameter.empty if key.needed else None) if new else None

    def read(given: Any) -> object:  # noqa: ANN401
        if given is None or given == []:
            return None
        if empties and given in (NOTHING, [NOTHING]):
            return {} if form == "object" else [] if is_listed else key.default
        if form == "object":
            return _pairs(called.replace("_", "-"), schema["additionalProperties"], given)
        if form == "boolean":
            return {"true": True, "false": False}.get(given, given)
        return ALL if form == "list" and given == [ALL] else given

    if new and name in noun.positional:
        return MemberOption(name, argument(called, called.upper(), text, needed), read)
    metavar = {"object": "NAME=VALUE", "boolean": "true|false"}.get(form, "DATE" if name.endswith("_date") else None)
    kind = list[str] if is_listed else str
    return MemberOption(name, option(called, kind, text, metavar=metavar, default=needed), read)


def _client_option(declared: ClientMember, *, new: bool) -> MemberOption:
    form, member = declared.form, declared.member
    kind: Any = str if declared.is_flag_or_none else _CLIENT_TYPES.get(form, str)
    name = declared.option.replace("_", "-")
    named = [f"--{each}" for each in (name, member.former.replace("_", "-")) if each]
    if form == "flag" and not declared.is_flag_or_none:
        named = [f"--{name}/--no-{name}"]
    emptied = "none empties the list." if declared.listed else "none removes it."
    further = member.default_help if new else emptied if declared.empties else ""
    metavar = "true|false" if declared.is_flag_or_none else "DATE" if form == "day" else None
    needed = inspect.Parameter.empty if new and member.needed and declared.name in API_CLIENT_MEMBERS else None

    def read(given: Any) -> object:  # noqa: ANN401
        if given is None or given == []:
            return None
        if declared.listed:
            return [] if not new and declared.empties and given == [NOTHING] else given
        return output.text_of(given, expected="a JSON Web Key Set") if isinstance(given, Path) else given

    kind = list[kind] if declared.listed else kind
    text = f"{member.help} {further}".strip()
    return MemberOption(
        declared.name, option(declared.option, kind, text, *named, metavar=metavar, default=needed), read
    )


_CLIENT_TYPES: Final[Mapping[MemberForm, type]] = {"key set": Path, "flag": bool, "number": int}


def _pairs(called: str, schema: Mapping[str, Any], given: list[str]) -> dict[str, Any]:
    """The values of NAME=VALUE by name.

    Texts, definitions of parameters, or several texts each, as the schema says.
    """
    found: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        kind, _, further = value.partition(",")
        if not equals:
            output.fail(f"--{called} {each}: write a name and a value, such as {_EXAMPLES[called]}")
        if "properties" in schema:
            if further not in {"", "mandatory"}:
                output.fail(f"--{called} {each}: after the comma only the word mandatory is expected")
            found[name] = {"kind": kind, "mandatory": bool(further)}
        elif "anyOf" in schema:
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found


_EXAMPLES: Final = {"parameter": "Limit=500", "role-description": "Approver=Approves."}


def commands_of(name: str) -> typer.Typer:
    """The generated commands of a noun."""
    noun, app = NOUNS[name], typer.Typer(no_args_is_help=True)
    for verb, text in noun.texts.items():
        if verb == "update" and not member_options(noun, new=False):
            continue
        register(app, verb, text, *_MAKERS[verb](name, noun))
    return app


def __getattr__(name: str) -> typer.Typer:
    """The commands of a noun without others, made when asked for."""
    if name in NOUNS:
        return commands_of(name)
    raise AttributeError(name)


def _list(name: str, noun: Noun) -> Command:
    filters = {each for shown in noun.lists for each in shown.options}
    needed = dict.fromkeys(noun.needs, inspect.Parameter.empty)
    parameters = [
        option(each, str, text, metavar=metavar, default=needed.get(each, ""))
        if metavar
        else option(each, bool, text, default=False)
        for each, (metavar, text) in FILTERS.items()
        if each in filters
    ]

    def show(limit: int, after: str, json: bool, **given: Any) -> None:  # noqa: ANN401
        wanted = {option: value for option, value in given.items() if value}
        shown = next((each for each in noun.lists[1:] if wanted.keys() & {*each.chosen_by}), noun.lists[0])
        if not wanted.keys() <= {*shown.options}:
            named = " and ".join(f"--{option.replace('_', '-')}" for option in wanted)
            output.fail(f"{named} cannot be combined: leave one of them out")

        async def read(stores: Stores, chosen: Settings) -> tuple[ListPage[Any], View]:
            return await shown.load(stores, wanted, after, limit), View(chosen, listing.today(chosen, stores))

        page, view = with_stores(read)
        if json:
            output.as_json({shown.name: [shown.data(each, view) for each in page.found], "after": page.after})
        elif shown.none and not page.found:
            output.say(shown.none)
        else:
            flags = (f"--{option.replace('_', '-')}" for option, value in wanted.items() if value is True)
            command = " ".join([name, "list", *flags])
            texts = {option: value for option, value in wanted.items() if value is not True}
            title, row = shown.title.format(**wanted), shown.row
            listing.show(title, [*shown.columns], page, lambda each: row(each, view), command, limit=limit, **texts)

    return [*parameters, LIMIT, AFTER, JSON], show


def _show(_: str, noun: Noun) -> Command:
    details = noun.details
    assert details is not None  # noqa: S101 - of a noun with this command

    def show(json: bool, **given: Any) -> None:  # noqa: ANN401
        async def read(stores: Stores, chosen: Settings) -> tuple[NamedRecord, Any, View]:
            found = await single_records.find_record(stores.registry, stores.actor, noun.kind, given)
            return found, await details.load(stores, found), View(chosen, listing.today(chosen, stores))

        found, shown, view = with_stores(read)
        data = (details.data or noun.lists[0].data)(shown, view)
        if json:
            output.as_json(data)
            return
        output.members(name_record(noun, found), details.values(shown) if details.values else describe(data))
        if details.note:
            output.say(details.note.format(*found.names.values()))

    return [*identity_parameters(noun), JSON], show


def to_members(data: Any) -> dict[str, Any]:  # noqa: ANN401 - a record, or its JSON
    """The members of a record, or of its JSON."""
    return data if isinstance(data, dict) else msgspec.structs.asdict(data)


def describe(data: Any) -> dict[str, Lines]:  # noqa: ANN401
    """The members of a record that have a value, in words."""
    found = {name: value for name, value in to_members(data).items() if value not in (None, [], *_EMPTY)}
    return {
        name: tuple(map(to_text, value))
        if isinstance(value, tuple | list)
        else f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M} UTC"
        if name.endswith("_at")
        else to_text(value)
        for name, value in found.items()
    }


def name_record(noun: Noun, found: NamedRecord) -> str:
    """A record by its identity, as changes name it."""
    if noun.keyed:
        [name] = found.names.values()
        return name
    return difference(Change(None, found.record), found.user_names).subject


def _add(_: str, noun: Noun) -> Command:
    options = member_options(noun, new=True)

    def add(dry_run: bool, json: bool, **given: Any) -> None:  # noqa: ANN401
        members = noun.implied(read_members(options, given))
        given |= {name: members.pop(name) for name in noun.identity if name in members}
        applied = with_stores(
            lambda stores, _: single_records.add_record(
                stores.registry, stores.passwords, noun.kind, given, members, actor=stores.actor, dry_run=dry_run
            )
        )
        listing.report(applied, dry_run=dry_run, json=json, done="added" if noun.keyed else "")

    return [*own_arguments(noun), *(each.parameter for each in options), DRY_RUN, JSON], add


def _update(_: str, noun: Noun) -> Command:
    options = member_options(noun, new=False)

    def update(dry_run: bool, json: bool, **given: Any) -> None:  # noqa: ANN401
        members = read_members(options, given)
        applied = with_stores(
            lambda stores, chosen: single_records.update_record(
                stores.registry, stores.passwords, noun.kind, given, members, actor=stores.actor,
                rules=client_rules(chosen), dry_run=dry_run,
            )
        )  # fmt: skip
        listing.report(applied, dry_run=dry_run, json=json)

    return [*identity_parameters(noun), *(each.parameter for each in options), DRY_RUN, JSON], update


def _change(noun: Noun, flow: Callable[..., Awaitable[ApplyResult]], done: str = "", **how: bool) -> Command:
    """A command that does one thing to a record."""

    def change(dry_run: bool, json: bool, **given: Any) -> None:  # noqa: ANN401
        applied = with_stores(
            lambda stores, _: flow(stores.registry, noun.kind, given, actor=stores.actor, dry_run=dry_run, **how)
        )
        listing.report(applied, dry_run=dry_run, json=json, done=done if noun.keyed else "")

    return [*identity_parameters(noun), DRY_RUN, JSON], change


_MAKERS: Final[Mapping[str, Callable[[str, Noun], Command]]] = {
    "list": _list, "show": _show, "add": _add, "update": _update,
    "remove": lambda _, noun: _change(noun, single_records.remove_record),
    "disable": lambda _, noun: _change(noun, single_records.set_enabled, "disabled", enabled=False),
    "enable": lambda _, noun: _change(noun, single_records.set_enabled, "enabled", enabled=True),
}  # fmt: skip


# --- what lists and details show


def _listed(listed: RecordList, order: str = "", option: str = "search") -> Load:
    """Read a list in one of its orders; an option narrows it."""
    return lambda stores, wanted, after, limit: lists.list_records(
        stores.registry, stores.actor, listed, order=order, search=wanted.get(option, ""), after=after, limit=limit,
        count_to=MOST_COUNTED,
    )  # fmt: skip


async def _list_grants(
    registry: Registry, actor: Actor, wanted: lists.ListFilter, *, after: str, limit: int
) -> ListPage[Any]:
    where = await lists.read_filter(registry, actor, wanted)
    return await lists.list_records(registry, actor, GRANTS, where, after=after, limit=limit)


def _filtered(flow: Callable[..., Awaitable[ListPage[Any]]]) -> Load:
    """Read a list by the records that its own are about."""

    def load(stores: Stores, wanted: dict[str, str], after: str, limit: int) -> Awaitable[ListPage[Any]]:
        named = {name: wanted.get(name, "") for name in ("user", "client_entity", "service")}
        found = lists.ListFilter(entity=wanted.get("entity") or wanted.get("third_party", ""), **named)
        return flow(stores.registry, stores.actor, found, after=after, limit=limit)

    return load


def role_data(role: RoleRecords, view: View) -> dict[str, object]:
    """A role for JSON, with why it is not effective."""
    row = role.row
    client = {} if role.client_entity is None else {"client_entity": role.client_entity.entity_id}
    return {
        "user": role.user.user_name,
        "identity": member_details.identity(role.membership, role.user),
        "entity": role.entity.entity_id,
        **client,
        "service": row.service_id,
        **{name: getattr(row, name) for name in ("role", "sub_entity", "ref", "start_date", "end_date", "parameters")},
        "not_effective": reasons(role, view.today),
    }


def _role_state(role: RoleRecords, view: View) -> str:
    why, last = reasons(role, view.today), last_day(role, view.today)
    return "; ".join(why) if why else f"until {last}" if last else "effective"


def _appointment_data(held: Appointment, _: View) -> dict[str, Any]:
    """An administrator for JSON, with why they cannot act at present."""
    links = {
        "the invitation has not been accepted": not held.membership.invited,
        "the person is disabled": held.user.enabled or held.user.placeholder,
        "the membership is disabled": held.membership.enabled,
        "the entity is disabled": held.entity.enabled,
    }
    own = held.administrator
    return {
        "user": held.user.user_name,
        "identity": member_details.identity(held.membership, held.user),
        "entity": held.entity.entity_id,
        "level": own.level,
        "services": own.services if own.level == "sub_administrator" else ALL,
        "not_effective": [why for why, enabled in links.items() if not enabled],
    }


def _member_data(member: Member, _: View) -> dict[str, object]:
    """A member for JSON, as the entity knows them (D61, D68)."""
    return {
        "membership_id": member.membership.membership_id,
        "user": member.user.user_name,
        "identity": member.identity,
        "user_name": member_details.member_user_name(member.membership, member.user),
        "external_id": member.membership.external_id or None,
        "name": member_details.member_full_name(member.membership, member.user),
        "email": member.email,
        **{name: getattr(member.membership, name) or None for name in _KEPT},
        "state": member.state,
    }


_KEPT: Final = [name for name, key in MEMBERSHIP.keys.items() if not key.identifies and name != "enabled"]
"""what an entity's documents say of a member"""


def _membership_state(held: EntityMember | Belonging, shown: User | Entity) -> str:
    if shown.enabled and not held.membership.enabled:
        return "membership disabled"
    return listing.state_of(shown) if isinstance(shown, User) else listing.state(enabled=shown.enabled)


async def _load_entity(stores: Stores, found: NamedRecord) -> dict[str, Any]:
    entity_id, registry = found.record.entity_id, stores.registry
    wanted = lists.ListFilter(entity=entity_id)
    held = await lists.list_administrators(registry, stores.actor, wanted, after="", limit=_ADMINISTRATORS_SHOWN)
    pending = await approvals.list_requests(
        registry, stores.actor, entity_id=entity_id, state="pending", now=stores.clock(), after="", limit=1
    )
    levels = [(member_details.identity(each.membership, each.user), each.administrator.level) for each in held.found]
    return {
        "entity": found.record,
        "administrators": [{"user": name, "level": level} for name, level in levels],
        "after": held.after,
        "requests_wait": bool(pending.found),
    }


def _describe_entity(shown: dict[str, Any]) -> dict[str, Lines]:
    entity_id = shown["entity"].entity_id
    held = [f"{each['user']} ({each['level']})" for each in shown["administrators"]]
    more = [f"and more: `corpid administrator list --entity {entity_id}`"] if shown["after"] else []
    waiting = {"requests": f"Changes wait for approval: `corpid approval list --entity {entity_id}`."}
    return {
        **describe(shown["entity"]),
        "administrators": (*held, *more) or "(none)",
        **(waiting if shown["requests_wait"] else {}),
    }


def _describe_client(client: Client | RegisteredApiClient) -> dict[str, Lines]:
    of_api = isinstance(client, RegisteredApiClient)
    return {**({"kind": "client of the admin API"} if of_api else {}), **describe(client)}


async def _list_entities_of(stores: Stores, wanted: dict[str, str], after: str, limit: int) -> ListPage[Belonging]:
    person = await find_user(stores.registry, wanted["user"], actor=stores.actor)
    return await lists.list_memberships(stores.registry, stores.actor, person, after=after, limit=limit)


async def _list_operators(
    stores: Stores, _: dict[str, str], after: str, limit: int
) -> ListPage[tuple[User, OperatorLevel]]:
    found = await appointments.list_operators(stores.registry, actor=stores.actor)
    places = [user.user_name for user, _ in found]
    if after and after not in places:
        raise lists.UnknownPlace
    first = places.index(after) + 1 if after else 0
    return lists.cut_page(found[first : first + limit + 1], limit, places[first:])


async def _load_role(stores: Stores, found: NamedRecord) -> RoleRecords:
    [role] = await lists.load_roles(stores.registry.directory, [found.record])
    return role


async def _load_appointment(stores: Stores, found: NamedRecord) -> Appointment:
    wanted = lists.ListFilter(user=found.names["user"], entity=found.names["entity"])
    [held] = (await lists.list_administrators(stores.registry, stores.actor, wanted, after="", limit=1)).found
    return held


async def _load_operator(stores: Stores, found: NamedRecord) -> tuple[User, OperatorLevel]:
    user = await find_user(stores.registry, found.names["user"], actor=stores.actor)
    return user, found.record.level


async def _load_record(_: Stores, found: NamedRecord) -> object:
    return found.record


_THIRD_PARTIES: Final = ("client_entity", "third_party", "service")
_PEOPLE: Final[dict[str, Any]] = {
    "User": "user_name", "Name": "name", "E-mail": "email", "State": lambda user, _: listing.state_of(user),
}  # fmt: skip
_ENTITIES: Final[dict[str, Any]] = {
    "Entity": "entity_id", "Name": "name", "Type": "type", "Status": "status",
    "State": lambda entity, _: listing.state(enabled=entity.enabled),
}  # fmt: skip
_ROLE: Final[dict[str, Any]] = {
    "Service": "service", "Role": lambda role, _: listing.parts(role.row), "State": _role_state,
}  # fmt: skip
_UPDATE: Final = "; the others keep their values.\n\nA list is replaced as a whole."
_ONE_OF_SEVERAL: Final = "\n\nIf several are meant, nothing is changed, and they are listed."
NOUNS: Final[dict[str, Noun]] = {
    "user": Noun(
        kind="user",
        texts={
            "list": "List people, by user name.",
            "update": f"Change members of a person{_UPDATE}",
            "remove": "Remove a person with their factors, memberships and roles.\n\n"
            "The audit keeps their name; `erase` removes that, too.",
            "disable": "Disable a person: no sign-in, and tokens end within 5 seconds.",
            "enable": "Enable a person again.",
        },
        lists=(
            ListCommand("People", "users", ("search",), _listed(USERS), _PEOPLE),
            ListCommand(
                "People of {entity}", "users", ("entity", "search"),
                lambda stores, wanted, after, limit: lists.list_members(
                    stores.registry, stores.actor, wanted["entity"], search=wanted.get("search", ""), after=after,
                    limit=limit,
                ),
                {
                    "User": "user_name", "Name": "name",
                    "Level": lambda held, _: LEVELS.get(held.level, ""),
                    "State": lambda held, _: _membership_state(held, held.user),
                },
                lambda held, _: {
                    **msgspec.structs.asdict(held.user),
                    "membership_enabled": held.membership.enabled, "level": held.level or None,
                },
                chosen_by=("entity",),
            ),
            ListCommand(
                "People", "users", ("name",), _listed(USERS, "name", "name"), _PEOPLE, chosen_by=("name",)
            ),
            ListCommand(
                "People who asked to be deleted", "users", ("deletion_requested",),
                lambda stores, _, after, limit: person_records.list_deletion_requests(
                    stores.registry, stores.actor, after=after, limit=limit
                ),
                {
                    "User": "user_name", "Name": "name", "E-mail": "email",
                    "Asked on": lambda each, view: view.moment(each.requested_at),
                },
                lambda each, _: {**msgspec.structs.asdict(each.user), "deletion_requested_at": each.requested_at},
                chosen_by=("deletion_requested",),
            ),
        ),
    ),
    "entity": Noun(
        kind="entity",
        texts={
            "list": "List entities, by identifier.",
            "show": "Show one entity, with its administrators.",
            "add": "Add an entity.",
            "update": "Change members of an entity; the others keep their values.",
            "remove": "Remove an entity with its memberships, roles and grants.\n\n`disable` only stops it.",
            "disable": "Disable an entity: nobody can act for it.",
            "enable": "Enable an entity again.",
        },
        lists=(
            ListCommand("Entities", "entities", ("search",), _listed(ENTITIES), _ENTITIES),
            ListCommand(
                "Entities of {user}", "entities", ("user",), _list_entities_of,
                {
                    "Entity": lambda held, _: held.entity.entity_id, "Name": lambda held, _: held.entity.name,
                    "Level": lambda held, _: held.level, "State": lambda held, _: _membership_state(held, held.entity),
                },
                lambda held, _: {
                    "entity": held.entity, "membership_enabled": held.membership.enabled, "level": held.level or None
                },
                chosen_by=("user",),
            ),
            ListCommand(
                "Entities", "entities", ("name",), _listed(ENTITIES, "name", "name"), _ENTITIES,
                chosen_by=("name",),
            ),
        ),
        details=Details(
            _load_entity, lambda shown, _: shown, _describe_entity,
            note="People: `corpid user list --entity {0}`. Roles: `corpid role list --entity {0}`.",
        ),
        defaults={"type": "UEN", "country": "SG"},
        implied=lambda members: {
            **members, "status": members["status"] or ("Registered" if members["type"] == "UEN" else None)
        },
    ),
    "membership": Noun(
        kind="membership",
        texts={
            "list": "List the members of an entity, with the entity's data about them.\n\n"
            "Also those who have not accepted their invitation yet.",
            "show": "Show one membership, with the entity's data about the person.",
            "add": "Let a person act for an entity.",
            "update": "Change what an entity writes about one of its members.",
            "remove": "End a membership, with its level and roles.",
            "disable": "Suspend a membership: its level and roles stay, without effect.",
            "enable": "Restore a membership, with its level and roles.",
        },
        lists=(
            ListCommand(
                "Members of {entity}", "members", ("entity",),
                lambda stores, wanted, after, limit: members.list_members_by_name(
                    stores.registry, wanted["entity"], actor=stores.actor, after=after, limit=limit
                ),
                {
                    "User name": "identity", "Name": "name", "E-mail": "email",
                    "State": lambda member, _: _MEMBER_STATES[member.state], "Identifier": "membership_id",
                },
                _member_data,
            ),
        ),
        details=Details(
            lambda stores, found: members.load_member(
                stores.registry, found.record.membership_id, actor=stores.actor
            )
        ),
        needs=("entity",),
    ),
    "service": Noun(
        kind="service",
        texts={
            "list": "List services, by identifier.",
            "show": "Show one service: its roles, and which entities may use it.",
            "add": "Add a service.",
            "update": f"Change members of a service{_UPDATE}",
            "remove": "Remove a service, with the roles and grants at it.\n\n`disable` only stops it.",
            "disable": "Disable a service: nobody has a role there.",
            "enable": "Enable a service again.",
        },
        lists=(
            ListCommand(
                "Services", "services", ("search",), _listed(SERVICES),
                {
                    "Service": "service_id", "Name": "name", "Roles": lambda service, _: ", ".join(service.roles),
                    "Third parties": lambda service, _: "allowed" if service.third_parties else "",
                    "State": lambda service, _: listing.state(enabled=service.enabled),
                },
            ),
        ),
        details=Details(_load_record, note="Who has a role there: `corpid role list --service {0}`."),
    ),
    "role": Noun(
        kind="assignment",
        texts={
            "list": "List roles, also those that are not effective, with the reason.",
            "show": f"Show one role, and why it is not effective, if so.{_ONE_OF_SEVERAL}",
            "add": "Give a person a role for an entity.\n\n"
            "If the person has that role already, what is named of it changes.",
            "update": f"Change dates or parameters of one role.{_ONE_OF_SEVERAL}",
            "remove": f"Take one role from a person.{_ONE_OF_SEVERAL}",
        },
        lists=(
            ListCommand(
                "Roles", "roles", ("user", "entity", "service"), _filtered(lists.list_roles),
                {"User": "identity", "Entity": lambda role, _: listing.entity(role.entity), **_ROLE}, role_data,
            ),
        ),
        details=Details(_load_role),
        positional=("role",),
    ),
    "administrator": Noun(
        kind="administrator",
        texts={
            "list": "List administrators of entities, with their levels.",
            "show": "Show one administrator, and why they cannot act, if so.",
            "add": "Make a member of an entity its administrator, at a level.\n\n"
            "If the person has a level there already, it changes.",
            "update": "Change an administrator's level or services.",
            "remove": "Remove an administrator's level; the membership and the roles stay.",
        },
        lists=(
            ListCommand(
                "Administrators", "administrators", ("user", "entity"), _filtered(lists.list_administrators),
                {
                    "User": "identity", "Entity": lambda held, _: listing.entity(held.entity), "Level": "level",
                    "Services": lambda held, view: to_text(_appointment_data(held, view)["services"]),
                    "State": lambda held, view: "; ".join(_appointment_data(held, view)["not_effective"]) or "effective",
                },
                _appointment_data,
            ),
        ),
        details=Details(_load_appointment),
        positional=("level",),
    ),
    "operator": Noun(
        kind="operator",
        texts={
            "list": "List the operators of the deployment, with their levels.",
            "show": "Show one operator.",
            "add": "Make a person an operator of the deployment, at a level.\n\n"
            "If the person has a level already, it changes.",
            "update": "Change the level of an operator.",
            "remove": "Remove an operator's level; the last one who can act stays.",
        },
        lists=(
            ListCommand(
                "Operators", "operators", (), _list_operators,
                {
                    "User": "user", "Name": lambda held, _: held[0].name, "Level": "level",
                    "State": lambda held, _: "effective" if held[0].enabled else "the person is disabled",
                },
                lambda held, _: {"user": held[0].user_name, "level": held[1], "enabled": held[0].enabled},
                none="Nobody operates this deployment in the browser yet: `corpid operator add USER operator` makes "
                "the first one.",
            ),
        ),
        details=Details(_load_operator),
        defaults={"level": "operator"},
        positional=("level",),
    ),
    "third-party": Noun(
        kind="grant",
        texts={
            "list": "List what entities offer and grant to third parties.\n\n"
            "An offer gives nothing until the third party has accepted it. With --people, the roles that third parties "
            "gave to their people: for whom, until when, and why not, if not.",
            "show": f"Show one offer or grant.{_ONE_OF_SEVERAL}",
        },
        lists=(
            ListCommand(
                "Grants", "grants", _THIRD_PARTIES, _filtered(_list_grants),
                {
                    "Entity": "client_entity_id", "Third party": "entity_id", "Service": "service_id",
                    "Role": lambda grant, _: listing.parts(grant, any_role="(any)"),
                    "From": lambda grant, _: listing.first_day(grant.start_date),
                    "Until": lambda grant, _: "" if grant.end_date == NO_END else grant.end_date,
                    "State": "state",
                },
            ),
            ListCommand(
                "Roles of third parties' people", "roles", (*_THIRD_PARTIES, "people", "user"),
                _filtered(partial(lists.list_roles, third_party=True)),
                {"User": "identity", "Third party": "entity", "For": "client_entity", **_ROLE}, role_data,
                chosen_by=("people", "user"),
            ),
        ),
        details=Details(_load_record),
        positional=("role",),
    ),
    "client": Noun(
        kind="client",
        texts={
            "show": "Show the registration of one client.",
            "update": f"Change members of a relying party, or of an API client{_UPDATE}",
            "remove": "Remove a client for good; `disable` only stops it.",
            "disable": "Disable a client: its requests are refused within 5 seconds.",
            "enable": "Enable a client again.",
        },
        details=Details(_load_record, lambda client, _: client, _describe_client),
    ),
}  # fmt: skip
