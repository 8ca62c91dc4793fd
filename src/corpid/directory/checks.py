"""Whether the records of a file make sense together with the directory (R-14, R-20, R-21)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from corpid.directory.names import mixed_scripts
from corpid.directory.parameters import unfit
from corpid.directory.problems import Problem, quoted
from corpid.directory.records import (
    Assignment,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from corpid.directory.third_parties import allows, covers
from corpid.directory.values import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from corpid.directory.current import Current, Key
    from corpid.directory.document import Entry
    from corpid.directory.plan import CheckClient
    from corpid.directory.sections import Kind

    Wanted: TypeAlias = Mapping[Kind, Mapping[Key, tuple[Entry, msgspec.Struct]]]
    Row: TypeAlias = Assignment | ThirdPartyGrant | ThirdPartyAssignment


class Found:
    """Problems, which stop the file, and warnings, which do not."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def wrong(self, entry: Entry, member: str, reason: str) -> None:
        """Note a problem in the line of a member."""
        self.problems.append(Problem(entry.line_of(member), reason))

    def odd(self, entry: Entry, member: str, reason: str) -> None:
        """Note a warning in the line of a member."""
        self.warnings.append(Problem(entry.line_of(member), reason))


def check(wanted: Wanted, current: Current, removed: Mapping[Kind, frozenset[Key]], check_client: CheckClient) -> Found:
    """Judge every record of a file against the directory as it will be. Source: R-14, R-20, R-21"""
    checking = _Checking(wanted, current, removed)
    for records in wanted.values():
        for entry, record in records.values():
            checking.judge(entry, record)
    for entry, client in wanted["client"].values():
        checking.client(entry, client, check_client)
    return checking.found


class _Checking:
    def __init__(self, wanted: Wanted, current: Current, removed: Mapping[Kind, frozenset[Key]]) -> None:
        self.found = Found()
        self._wanted = wanted
        self._current = current
        self._removed = removed
        self._grants: defaultdict[Key, list[ThirdPartyGrant]] = defaultdict(list)
        grants = {key: record for key, record in current.of("grant").items() if key not in removed.get("grant", ())}
        grants |= {key: record for key, (_, record) in wanted["grant"].items()}
        for key, record in grants.items():
            if isinstance(record, ThirdPartyGrant):
                self._grants[key[:3]].append(record)

    def judge(self, entry: Entry, record: msgspec.Struct) -> None:
        """Apply the rules of the record's kind."""
        match record:
            case Entity():
                self._named(entry, record.name)
            case Membership():
                self._there(entry, "entity", (record.entity_id,), "entity_id")
            case Assignment():
                self._member(entry, record)
                self._row(entry, record, blank_role=False)
            case ThirdPartyGrant():
                self._grant(entry, record)
            case ThirdPartyAssignment():
                self._member(entry, record)
                self._there(entry, "entity", (record.client_entity_id,), "client_entity_id")
                self._row(entry, record, blank_role=False)
                self._inside(entry, record)
            case _:
                pass

    def client(self, entry: Entry, record: msgspec.Struct, check_client: CheckClient) -> None:
        """Apply the rules of registration, and look for the client's services."""
        self._named(entry, str(getattr(record, "name", "")))
        for service_id in getattr(record, "services", ()) if "services" in entry.fields else ():
            self._there(entry, "service", (service_id,), "services")
        for member, reason in check_client(record):
            self.found.wrong(entry, member, f"{member}: {reason}")

    def _of(self, kind: Kind, key: Key) -> msgspec.Struct | None:
        if key in self._wanted[kind]:
            return self._wanted[kind][key][1]
        return None if key in self._removed.get(kind, ()) else self._current.of(kind).get(key)

    def _there(self, entry: Entry, kind: Kind, key: Key, member: str) -> None:
        if self._of(kind, key) is None:
            known = {other[0] for other in self._wanted[kind]}
            hint = suggestion(key[0], known)
            self.found.wrong(entry, member, f"there is no {kind} {quoted(key[0])}, here or in the directory{hint}")

    def _named(self, entry: Entry, name: str) -> None:
        scripts = mixed_scripts(name)
        if scripts:
            mixture = ", ".join(sorted(scripts))
            self.found.odd(
                entry, "name", f"the name {quoted(name)} mixes scripts ({mixture}): is it what it looks like?"
            )

    def _member(self, entry: Entry, row: Assignment | ThirdPartyAssignment) -> None:
        if self._of("membership", (row.user_id, row.entity_id)) is None:
            reason = f"{entry.key[0]} does not act for {row.entity_id}: add it to the memberships of {entry.key[0]}"
            self.found.wrong(entry, "user_id", reason)

    def _grant(self, entry: Entry, grant: ThirdPartyGrant) -> None:
        self._there(entry, "entity", (grant.client_entity_id,), "client_entity_id")
        self._there(entry, "entity", (grant.entity_id,), "entity_id")
        if grant.client_entity_id == grant.entity_id:
            self.found.wrong(entry, "entity_id", "an entity cannot be its own third party")
        self._row(entry, grant, blank_role=True)

    def _row(self, entry: Entry, row: Row, *, blank_role: bool) -> None:
        if row.start_date > row.end_date:
            self.found.wrong(entry, "end_date", f"the row ends on {row.end_date}, before it starts on {row.start_date}")
        service = self._of("service", (row.service_id,))
        if not isinstance(service, Service):
            self._there(entry, "service", (row.service_id,), "service_id")
            return
        self._role(entry, row, service, blank=blank_role)
        self._parameters(entry, row, service)
        if service.sub_entity == "none" and row.sub_entity:
            self.found.wrong(entry, "sub_entity", f"sub_entity: {service.service_id} has no sub-entities")
        if isinstance(row, Assignment):
            return
        if not service.third_parties:
            self.found.wrong(entry, "service_id", f"{service.service_id} does not allow third parties")

    def _role(self, entry: Entry, row: Row, service: Service, *, blank: bool) -> None:
        if row.role in service.roles or (not row.role and (blank or not service.roles)):
            return
        roles = f"its roles are {', '.join(service.roles)}" if service.roles else "it has no roles"
        named = f"role: {quoted(row.role)} is no role of" if row.role else "role: a role is needed at"
        self.found.wrong(entry, "role", f"{named} {service.service_id}; {roles}{suggestion(row.role, service.roles)}")

    def _parameters(self, entry: Entry, row: Row, service: Service) -> None:
        defined = {definition.name: definition for definition in service.parameters}
        for parameter in row.parameters:
            definition = defined.get(parameter.name)
            if definition is None:
                hint = suggestion(parameter.name, defined)
                reason = f"{service.service_id} defines no parameter {quoted(parameter.name)}{hint}"
                self.found.wrong(entry, "parameters", f"parameters: {reason}")
            elif why := unfit(definition.kind, parameter.value):
                self.found.wrong(entry, "parameters", f"parameters: {parameter.name}: {why}")
        if isinstance(row, ThirdPartyGrant):
            return
        if service.sub_entity == "mandatory" and not row.sub_entity:
            self._unset(entry, "sub_entity", "the mandatory sub_entity")
        set_names = {parameter.name for parameter in row.parameters if parameter.value}
        for name in (d.name for d in service.parameters if d.mandatory and d.name not in set_names):
            self._unset(entry, "parameters", f"the mandatory parameter {quoted(name)}")

    def _unset(self, entry: Entry, member: str, what: str) -> None:
        self.found.odd(entry, member, f"{what} is not set: relying parties will read ERROR_MISSING_VALUE")

    def _inside(self, entry: Entry, row: ThirdPartyAssignment) -> None:
        grants = self._grants[(row.client_entity_id, row.entity_id, row.service_id)]
        if any(covers(grant, row) for grant in grants):
            return
        granted = f"what {row.client_entity_id} granted to {row.entity_id} for {row.service_id}"
        if not grants:
            self.found.wrong(entry, "client_entity_id", f"there is no grant: {granted} is nothing")
            return
        spans = [f"{grant.start_date} to {grant.end_date}" for grant in grants if allows(grant, row)]
        why = f"; it was granted for {' and '.join(spans)}" if spans else ": role, sub-entity or parameters differ"
        member = "end_date" if spans else "role"
        self.found.wrong(entry, member, f"the row lies outside {granted}{why}")
