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
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias, Unpack

import msgspec
import typer

from corpid.cli import listing, output
from corpid.cli.running import with_stores
from corpid.flows.directory import approvals, lists, members, single_records
from corpid.flows.directory.lists import (
    Appointment,
    Belonging,
    ListPage,
    OperatingPerson,
    PageOptions,
    find_user,
)
from corpid.flows.directory.objects import to_rows
from corpid.rules.directory import differences, memberships
from corpid.rules.directory.differences import to_text
from corpid.rules.directory.lists import (
    ADMINISTRATORS,
    API_CLIENTS,
    ASSIGNMENTS,
    CLIENTS,
    DELETION_REQUESTS,
    ENTITIES,
    FILTERS,
    GRANTS,
    MEMBERS,
    MEMBERSHIPS,
    MOST_COUNTED,
    MOST_EXPORTED,
    OPERATORS,
    SERVICES,
    THIRD_PARTY_ASSIGNMENTS,
    USERS,
    RecordList,
)
from corpid.rules.directory.names import label_identity
from corpid.rules.directory.objects import MEMBERSHIP, Resource
from corpid.rules.directory.roles import RoleRecords, last_day, reasons
from corpid.rules.directory.tables import CsvRows
from corpid.rules.directory.values import ALL, NO_BEGINNING, NO_END
from corpid.rules.fields import NOTHING, Field
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.client_registration import used_generations
from corpid.settings.issuers import client_rules

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from corpid.cli.output import Lines
    from corpid.engines import Stores
    from corpid.flows.directory.apply import ApplyResult
    from corpid.flows.directory.single_records import NamedRecord
    from corpid.rules.directory.document import Kind
    from corpid.rules.directory.memberships import Member
    from corpid.rules.directory.records import Entity, Membership, User
    from corpid.rules.oauth.records import Client
    from corpid.settings import Settings

LEVELS: Final = {"owner": "owner", "administrator": "administrator", "sub_administrator": "sub-administrator"}
_MEMBER_STATES: Final = {
    "invited": "invited", "suspended": "suspended", "locked": "account disabled", "active": "active",
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
_METAVARS: Final = {
    "user": "NAME", "entity": "ID", "service": "ID", "client_entity": "ID", "third_party": "ID", "search": "TEXT",
    "name": "TEXT",
}  # fmt: skip
"""options of lists that have a value"""
_OTHER_LISTS: Final = {
    "deletion_requested": "Only people who asked to be deleted, by identifier.",
    "people": "The roles of third parties' people instead.",
    "api": "Only clients of the admin API.",
}
"""options that choose another list"""
_EXPORTED_AT_ONCE: Final = 200
_ADMINISTRATORS_SHOWN: Final = 10
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
    """of the records in JSON; empty: JSON is the whole list, without a name"""
    listed: RecordList
    columns: dict[str, str | Callable[[Any, View], Lines]]
    """heading → member of its JSON, or what makes a cell"""
    data: Callable[[Any, View], Any] = lambda record, _: record
    """what JSON shows"""
    chosen_by: tuple[str, ...] = ()
    """the options that choose it"""
    sort: str = ""
    """the order without a wish"""
    followers: tuple[ListCommand, ...] = ()
    """lists whose first page is printed after its own, if they have records"""
    in_api: bool = True
    """whether the admin API shows its records: an export has its columns"""
    kind: Kind | None = None
    """of its records, if not the noun's"""
    none: str = ""
    """a sentence instead of an empty list"""

    @property
    def options(self) -> set[str]:
        """The options that narrow or choose it."""
        return {*self.listed.queries, *self.chosen_by}

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
    defaults: Mapping[str, str | None] = MappingProxyType({})
    """of members that a new record has to have; None: the flow says so"""
    switches: bool = False
    """whether flags are options without a value"""
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
TOTAL: Final = flag("total", listing.Total)
CSV: Final = flag("csv", listing.AsCsv)


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
    left_out = {"enabled", "state", *(_ARGUMENTS if new else noun.identity)}
    return [_member_option(noun, name, new=new) for name in noun.resource.keys if name not in left_out]


def read_members(options: list[MemberOption], given: dict[str, Any]) -> dict[str, object]:
    """Take the members that options set out of `given`."""
    return {each.member: each.read(given.pop(each.parameter.name)) for each in options}


def _member_option(noun: Noun, name: str, *, new: bool) -> MemberOption:
    key, schema = noun.resource.keys[name], noun.resource.properties[name]
    form = key.form if key.form == "key set" else schema.get("type", "list")
    is_listed = form in {"array", "object", "list"}
    empties = not new and (key.clearable or key.default in _EMPTY)
    called = _OPTION_NAMES.get(name, name.removesuffix("s") if is_listed else name)
    named = [f"--{each.replace('_', '-')}" for each in (called, key.former) if each]
    words = [] if is_listed else [word for word in schema.get("enum", ()) if word]
    text = _describe_option(key, words, is_listed=is_listed, new=new, empties=empties)
    needed = noun.defaults.get(name, inspect.Parameter.empty if key.needed else None) if new else None
    is_switch = noun.switches and form == "boolean" and not key.clearable

    def read(given: Any) -> object:  # noqa: ANN401
        if given is None or given == []:
            return None
        if empties and given in (NOTHING, [NOTHING]):
            return {} if form == "object" else [] if is_listed else NOTHING if key.clearable else key.default
        if form == "object":
            return _pairs(called.replace("_", "-"), schema["additionalProperties"], given)
        if form == "boolean":
            return {"true": True, "false": False}.get(given, given)
        if isinstance(given, Path):
            return output.text_of(given, expected="a JSON Web Key Set")
        return ALL if form == "list" and given == [ALL] else given

    if new and name in noun.positional:
        return MemberOption(name, argument(called, called.upper(), text, needed), read)
    if is_switch:
        named = [f"{named[0]}/{named[0].replace('--', '--no-', 1)}"]
    metavar = {"object": "NAME=VALUE", "boolean": None if is_switch else "true|false"}.get(form)
    kind = bool if is_switch else {"key set": Path, "integer": int}.get(form, list[str] if is_listed else str)
    metavar = "DATE" if key.form == "day" else metavar
    return MemberOption(name, option(called, kind, text, *named, metavar=metavar, default=needed), read)


def _describe_option(key: Field, words: list[str], *, is_listed: bool, new: bool, empties: bool) -> str:
    """The help of an option; `words` are its values."""
    text = key.help
    if is_listed and text and "; repeat" not in text:
        text = f"{text.removesuffix('.')}; repeat for several."
    if not all(word in text for word in words):
        text = f"{text.removesuffix('.')}{': ' if text else ''}{', '.join(words[:-1])} or {words[-1]}."
    emptied = ("none empties the list." if is_listed else "none removes it.") if empties else ""
    return " ".join(filter(None, (text, key.default_help if new else "", emptied)))


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
    sorts = dict.fromkeys(each.name for shown in noun.lists for each in shown.listed.orders)
    parameters = [
        *(
            option(each, str, FILTERS[each], metavar=metavar, default=needed.get(each, ""))
            for each, metavar in _METAVARS.items()
            if each in filters
        ),
        *(option(each, bool, text, default=False) for each, text in _OTHER_LISTS.items() if each in filters),
        option("sort", str, f"Sort by {', '.join(sorts)}; a leading - reverses the order.", default=""),
    ]

    def show(limit: int, after: str, json: bool, csv: bool, total: bool, sort: str, **given: Any) -> None:  # noqa: ANN401
        wanted = {option: value for option, value in given.items() if value}
        shown = _choose_list(noun, wanted, csv=csv)
        filters = {each: value for each, value in wanted.items() if each in shown.listed.filters}
        followers = () if json or after else shown.followers
        most = limit if shown.name or not json else MOST_EXPORTED

        async def load(stores: Stores, each: ListCommand = shown, **page: Unpack[PageOptions]) -> ListPage[Any]:
            order, search = lists.find_order(wanted, sort)
            page |= {"order": order or each.sort, "descending": sort.startswith("-"), "search": search}
            return await lists.list_with_records(stores.registry, stores.actor, each.listed, filters, **page)

        async def read(stores: Stores) -> tuple[list[ListPage[Any]], View]:
            count_to = MOST_COUNTED if total or not json else 0
            pages = [
                await load(stores, each, after=after, limit=most, count_to=count_to) for each in (shown, *followers)
            ]
            return pages, View(stores.settings, listing.today(stores))

        if csv:
            with_stores(lambda stores: _export(stores, single_records.BY_KIND[shown.kind or noun.kind], load))
            return
        pages, view = with_stores(read)
        page = pages[0]
        counted = {"total": page.total.count, "total_is_exact": page.total.exact} if total and page.total else {}
        if json:
            found = [shown.data(each, view) for each in page.found]
            output.as_json({shown.name: found, "after": page.after, **counted} if shown.name else found)
            return
        for each, page in zip((shown, *followers), pages, strict=True):
            if page.found or each is shown:
                options = wanted if each is shown else {**wanted, **dict.fromkeys(each.chosen_by, True)}
                _print_page(name, each, page, view, options, sort=sort, limit=limit, total=total)

    return [*parameters, TOTAL, LIMIT, AFTER, JSON, CSV], show


def _choose_list(noun: Noun, wanted: dict[str, Any], *, csv: bool) -> ListCommand:
    """The list that the options mean."""
    shown = next((each for each in noun.lists[1:] if wanted.keys() & {*each.chosen_by}), noun.lists[0])
    if not wanted.keys() <= shown.options:
        named = " and ".join(f"--{option.replace('_', '-')}" for option in wanted)
        output.fail(f"{named} cannot be combined: leave one of them out")
    if csv and not shown.in_api:
        output.fail("--csv has the columns of the admin API, which does not show these records")
    return shown


def _print_page(
    name: str,
    shown: ListCommand,
    page: ListPage[Any],
    view: View,
    wanted: dict[str, Any],
    *,
    sort: str,
    limit: int,
    total: bool,
) -> None:
    """Print a page as a table.

    `wanted` are the options that the next one has, too.
    """
    if shown.none and not page.found:
        output.say(shown.none)
        return
    flags = (f"--{option.replace('_', '-')}" for option, value in wanted.items() if value is True)
    texts = {**{option: value for option, value in wanted.items() if value is not True}, "sort": sort}
    listing.show(
        shown.title.format(**wanted), [*shown.columns], page, partial(shown.row, view=view),
        " ".join([name, "list", *flags]), limit=limit, total=total, **texts,
    )  # fmt: skip


async def _export(stores: Stores, resource: Resource, load: Callable[..., Awaitable[ListPage[Any]]]) -> None:
    """Print a whole list as CSV, in the columns of the API."""
    rows, after, count_to = CsvRows(), "", MOST_EXPORTED
    rows.write(resource.columns)
    while True:
        page = await load(stores, after=after, limit=_EXPORTED_AT_ONCE, count_to=count_to)
        if page.total is not None and not page.total.exact:
            output.fail(f"an export has at most {MOST_EXPORTED:,} records: narrow the list by its filters")
        for row in await to_rows(stores.registry, resource, page.found, whole=True):
            rows.write(row)
        output.document(rows.take().decode().replace("\r\n", "\n"))
        after, count_to = page.after, 0
        if not after:
            return


def _show(_: str, noun: Noun) -> Command:
    details = noun.details
    assert details is not None  # noqa: S101 - of a noun with this command

    def show(json: bool, **given: Any) -> None:  # noqa: ANN401
        async def read(stores: Stores) -> tuple[NamedRecord, Any, View]:
            found = await single_records.find_record(stores.registry, stores.actor, noun.kind, given)
            return found, await details.load(stores, found), View(stores.settings, listing.today(stores))

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
    return differences.name_record(noun.kind, found.record.key, found.user_names)


def _add(_: str, noun: Noun) -> Command:
    options = member_options(noun, new=True)

    def add(dry_run: bool, json: bool, **given: Any) -> None:  # noqa: ANN401
        members = noun.implied(read_members(options, given))
        given |= {name: members.pop(name) for name in noun.identity if name in members}
        applied = with_stores(
            lambda stores: single_records.add_record(
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
            lambda stores: single_records.update_record(
                stores.registry, stores.passwords, noun.kind, given, members, actor=stores.actor,
                rules=client_rules(stores.settings), dry_run=dry_run,
            )
        )  # fmt: skip
        listing.report(applied, dry_run=dry_run, json=json)

    return [*identity_parameters(noun), *(each.parameter for each in options), DRY_RUN, JSON], update


def _change(noun: Noun, flow: Callable[..., Awaitable[ApplyResult]], done: str = "", **how: bool) -> Command:
    """A command that does one thing to a record."""

    def change(dry_run: bool, json: bool, **given: Any) -> None:  # noqa: ANN401
        applied = with_stores(
            lambda stores: flow(stores.registry, noun.kind, given, actor=stores.actor, dry_run=dry_run, **how)
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


def role_data(role: RoleRecords, view: View) -> dict[str, object]:
    """A role for JSON, with why it is not effective."""
    row = role.row
    client = {} if role.client_entity is None else {"client_entity": role.client_entity.entity_id}
    return {
        "user": role.user.user_name,
        "identity": memberships.identity(role.membership, role.user),
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
    own = held.administrator
    return {
        "user": held.user.user_name,
        "identity": memberships.identity(held.membership, held.user),
        "entity": held.entity.entity_id,
        "level": own.level,
        "services": own.services if own.level == "sub_administrator" else ALL,
        "not_effective": list_obstacles(held.user, held.membership, held.entity),
    }


def list_obstacles(user: User, membership: Membership, entity: Entity) -> list[str]:
    """Why somebody cannot act for an entity at present."""
    links = {
        "the invitation has not been accepted": not membership.invited,
        "the person is disabled": user.enabled or user.placeholder,
        "the membership is suspended": membership.enabled,
        "the entity is disabled": entity.enabled,
    }
    return [why for why, enabled in links.items() if not enabled]


def _member_data(member: Member, _: View) -> dict[str, object]:
    """A member for JSON, as the entity knows them (D61, D68)."""
    return {
        "membership_id": member.membership.membership_id,
        "user": member.user.user_name,
        "identity": member.identity,
        "user_name": memberships.member_user_name(member.membership, member.user),
        "external_id": member.membership.external_id or None,
        "name": memberships.member_full_name(member.membership, member.user),
        "email": member.email,
        **{name: getattr(member.membership, name) or None for name in _KEPT},
        "state": member.state,
    }


_KEPT: Final = [name for name, key in MEMBERSHIP.keys.items() if not key.identifies and name != "enabled"]
"""what an entity's documents say of a member"""


def _membership_state(held: Belonging) -> str:
    if not held.membership.enabled:
        return "suspended"
    return "active" if held.entity.enabled else "entity disabled"


async def _load_entity(stores: Stores, found: NamedRecord) -> dict[str, Any]:
    entity_id, registry = found.record.entity_id, stores.registry
    held = await lists.list_with_records(
        registry, stores.actor, ADMINISTRATORS, {"entity": entity_id}, limit=_ADMINISTRATORS_SHOWN
    )
    pending = await approvals.list_requests(
        registry, stores.actor, entity_id=entity_id, state="pending", now=stores.clock(), after="", limit=1
    )
    return {
        "entity": found.record,
        "administrators": [
            {
                "user": memberships.identity(each.membership, each.user),
                "invited": each.membership.invited,
                "level": each.administrator.level,
            }
            for each in held.found
        ],
        "after": held.after,
        "requests_wait": bool(pending.found),
    }


def _describe_entity(shown: dict[str, Any]) -> dict[str, Lines]:
    entity_id = shown["entity"].entity_id
    held = [
        f"{label_identity(each['user'], invited=each['invited'])} ({each['level']})" for each in shown["administrators"]
    ]
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


async def _load_role(stores: Stores, found: NamedRecord) -> RoleRecords:
    [role] = await lists.load_roles(stores.registry.directory, [found.record])
    return role


async def _load_appointment(stores: Stores, found: NamedRecord) -> Appointment:
    page = await lists.list_with_records(stores.registry, stores.actor, ADMINISTRATORS, found.names, limit=1)
    [held] = page.found
    return held  # type: ignore[no-any-return]


async def _load_operator(stores: Stores, found: NamedRecord) -> OperatingPerson:
    user = await find_user(stores.registry, found.names["user"], actor=stores.actor)
    return OperatingPerson(user=user, operator=found.record)


async def _load_record(_: Stores, found: NamedRecord) -> object:
    return found.record


_PEOPLE: Final[dict[str, Any]] = {
    "User": lambda listed, _: listed.identity, "Name": "name", "E-mail": "email",
    "State": lambda listed, _: listing.state_of(listed.user),
}  # fmt: skip
_ENTITIES: Final[dict[str, Any]] = {
    "Entity": "entity_id", "Name": "name", "Type": "type", "Status": "status",
    "State": lambda entity, _: listing.state(enabled=entity.enabled),
}  # fmt: skip
_ROLE: Final[dict[str, Any]] = {
    "Service": "service", "Role": lambda role, _: listing.parts(role.row), "State": _role_state,
}  # fmt: skip
_API_CLIENTS: Final = ListCommand(
    "Clients of the admin API", "", API_CLIENTS,
    {
        "Client": lambda client, _: (client.client_id, client.name), "Scopes": "scopes", "Entity": "entity_id",
        "State": lambda client, _: listing.state(enabled=client.enabled),
    },
    chosen_by=("api",), in_api=False,
)  # fmt: skip
_UPDATE: Final = "; the others keep their values.\n\nA list is replaced as a whole."
_ONE_OF_SEVERAL: Final = "\n\nIf several match, it lists them and changes nothing."
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
            ListCommand("People", "users", USERS, _PEOPLE, lambda listed, _: listed.user),
            ListCommand(
                "People of {entity}", "users", MEMBERS,
                {
                    "User": "identity", "Name": "name",
                    "Level": lambda held, _: LEVELS.get(held.level, ""),
                    "State": lambda held, _: _MEMBER_STATES[held.state],
                },
                lambda held, _: {
                    **msgspec.structs.asdict(held.user), "identity": memberships.identity(held.membership, held.user),
                    "membership_enabled": held.membership.enabled, "level": held.level or None,
                },
                chosen_by=("entity",), sort="user_name",
            ),
            ListCommand(
                "People who asked to be deleted", "users", DELETION_REQUESTS,
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
            ListCommand("Entities", "entities", ENTITIES, _ENTITIES),
            ListCommand(
                "Entities of {user}", "entities", MEMBERSHIPS,
                {
                    "Entity": lambda held, _: held.entity.entity_id, "Name": lambda held, _: held.entity.name,
                    "Level": lambda held, _: held.level, "State": lambda held, _: _membership_state(held),
                },
                lambda held, _: {
                    "entity": held.entity, "membership_enabled": held.membership.enabled, "level": held.level or None
                },
                chosen_by=("user",),
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
                "Members of {entity}", "members", MEMBERS,
                {
                    "User name": "identity", "Name": "name", "E-mail": "email",
                    "State": lambda held, _: _MEMBER_STATES[held.state],
                    "Identifier": "membership_id",
                },
                _member_data, sort="shown_user_name",
            ),
        ),
        details=Details(
            lambda stores, found: members.load_member(stores.registry, found.record.membership_id, actor=stores.actor)
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
                "Services", "services", SERVICES,
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
            "list": "List roles, including those not in effect, with the reason.",
            "show": "Show one role, and the reason if it is not in effect.\n\nIf several match, it lists them.",
            "add": "Give a person a role for an entity.\n\n"
            "If the person has that role already, the options given change it.",
            "update": f"Change dates or parameters of one role.{_ONE_OF_SEVERAL}",
            "remove": f"Take one role from a person.{_ONE_OF_SEVERAL}",
        },
        lists=(
            ListCommand(
                "Roles", "roles", ASSIGNMENTS,
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
            "show": "Show one administrator, and the reason if they cannot act.",
            "add": "Make a member of an entity its administrator, at a level.\n\n"
            "If the person has a level there already, it changes.",
            "update": "Change an administrator's level or services.",
            "remove": "Remove an administrator's level; the membership and the roles stay.",
        },
        lists=(
            ListCommand(
                "Administrators", "administrators", ADMINISTRATORS,
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
            "remove": "Remove an operator's level; the last active operator keeps it.",
        },
        lists=(
            ListCommand(
                "Operators", "operators", OPERATORS,
                {
                    "User": "user", "Name": lambda held, _: held.user.name, "Level": "level",
                    "State": lambda held, _: "effective" if held.user.enabled else "the person is disabled",
                },
                lambda held, _: {
                    "user": held.user.user_name, "level": held.operator.level, "enabled": held.user.enabled
                },
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
            "An offer gives nothing until the third party has accepted it. With --people it lists the roles that third parties "
            "gave to their people: for whom, until when, and the reason if one is not in effect.",
            "show": "Show one offer or grant.\n\nIf several match, it lists them.",
        },
        lists=(
            ListCommand(
                "Grants", "grants", GRANTS,
                {
                    "Entity": "client_entity_id", "Third party": "entity_id", "Service": "service_id",
                    "Role": lambda grant, _: listing.parts(grant, any_role="(any)"),
                    "From": lambda grant, _: listing.first_day(grant.start_date),
                    "Until": lambda grant, _: "" if grant.end_date == NO_END else grant.end_date,
                    "State": "state",
                },
            ),
            ListCommand(
                "Roles of third parties' people", "roles", THIRD_PARTY_ASSIGNMENTS,
                {"User": "identity", "Third party": "entity", "For": "client_entity", **_ROLE}, role_data,
                chosen_by=("people", "user"), kind="third-party row",
            ),
        ),
        details=Details(_load_record),
        positional=("role",),
    ),
    "client": Noun(
        kind="client",
        texts={
            "list": "List every relying party, and every client of the admin API.\n\n"
            "JSON is the whole list: of relying parties, with --api of the others.",
            "show": "Show the registration of one client.",
            "update": f"Change members of a relying party, or of an API client{_UPDATE}",
            "remove": "Remove a client for good; `disable` only stops it.",
            "disable": "Disable a client: its requests are refused within 5 seconds.",
            "enable": "Enable a client again.",
        },
        lists=(
            ListCommand(
                "Relying parties", "", CLIENTS,
                {
                    "Client": lambda client, _: (client.client_id, client.name), "Redirect URIs": "redirect_uris",
                    "Services": lambda client, _: ", ".join(client.services),
                    "Generations": lambda client, view: tuple(
                        each.name for each in used_generations(client, client_rules(view.chosen))
                    ),
                    "State": lambda client, _: listing.state(enabled=client.enabled),
                },
                followers=(_API_CLIENTS,),
            ),
            _API_CLIENTS,
        ),
        details=Details(_load_record, values=_describe_client),
        defaults={"redirect_uris": None},
        switches=True,
    ),
}  # fmt: skip
