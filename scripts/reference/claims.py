"""docs/reference/claims.md and authorization-data.md: what each scope grants, member by member, with real examples."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpid.rules.directory.parties import ENTITY_MEMBERS, USER_MEMBERS
from corpid.rules.oauth.generations import CURRENT, FAPI2, INTERMEDIATE, LEGACY, Generation
from scripts.reference import answers
from scripts.reference.shapes import Either, ListOf, Member, Record, Scalar, Shape, said, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "reference" / "examples"
ORDER: Final = (CURRENT, FAPI2, INTERMEDIATE, LEGACY)
"""as a reader needs them: the default, the one for stock libraries, the one in between, the one that ends"""
ID_TOKEN: Final = "ID token"
_SHOWN_PARTS: Final = 2
OTHER_CLIENT: Final = " with subject entity and blocks as strings"
"""what distinguishes the recorded tokens of a client that is registered so"""
_WORDS: Final = re.compile(r'\[\n((?: *"[^"\n]*",?\n)+) *\]')
_EXAMPLES: Final = {"auth_info": "userinfo of rina", "tp_auth_info": "userinfo"}
"""block → the recorded response that has most of it"""
MADE: Final = "<!-- made by `make tables` -->\n"
_CLAIMS: Final = f"""# Claims

{MADE}
What your RP receives for each scope, by generation ([what differs](../generations.md)). Ask only for what you need:
`entity.*` and `user.*` scopes of a `private` client cost the person a consent page
([when](../relying-parties.md#when-people-are-asked-for-consent)). The tables come from the code's declarations, and a test holds them against a running
provider, scope by scope. The same as JSON Schemas and TypeScript: [schemas.md](schemas.md).

- **ID token**: decrypt with your `enc` key, then verify the signature, `iss`, `aud`, `exp`, `nonce` and `at_hash`. It never contains roles.
- **userinfo, entity-info, authorization-info**: read them with the access token; verify signature, `iss`, `aud`, `exp`, and that `sub` equals the ID
  token's.
- Attributes that the directory does not know are absent. Ignore members that you do not know.
"""
_DATA: Final = f"""# auth_info and tp_auth_info

{MADE}
What the person may do: `auth_info` for the entity that they act for, `tp_auth_info` for other entities, as a third party. Both come from userinfo (in legacy from
authorization-info, under the names `AuthInfo` and `TPAuthInfo`). Read them at every sign-in: the ID token contains no roles.

- `auth_info` needs the scope `authinfo`, and is there even if there is no row (count 0). `tp_auth_info` needs `tpauthinfo`, and is absent if there is no row.
  Legacy's authorization-info needs no scope.
- Only services that your client is registered for appear. Rows outside their dates are left out, so you need not compare dates to decide about today.
- The same directory gives the same order: services, client entities, then rows.
"""


@cache
def recorded(generation: str) -> dict[str, Any]:
    """The recorded exchanges and tokens of a generation."""
    content: dict[str, Any] = json.loads((EXAMPLES / f"{generation}.json").read_text(encoding="utf-8"))
    return content


def pretty(value: Any) -> str:  # noqa: ANN401 - JSON
    """JSON, with each list of words on one line."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _WORDS.sub(lambda found: f"[{', '.join(line.strip(' ,') for line in found[1].splitlines())}]", text)


def shown(value: Any) -> str:  # noqa: ANN401 - JSON
    """A JSON example."""
    return f"```json\n{pretty(value)}\n```\n"


def granted(generation: Generation, scope: str) -> dict[str, tuple[str, ...]]:
    """What a scope adds: token or resource → paths of members.

    `sub_attributes` are those of the person and of the entity, whichever of them is nested.
    """
    found: dict[str, tuple[str, ...]] = {}
    if not generation.packed_subject:
        of_person, of_entity = USER_MEMBERS.get(scope, {}), ENTITY_MEMBERS.get(scope, {})
        found[ID_TOKEN] = (
            *(f"sub_attributes.{name}" for name in of_person),
            *(f"entity.sub_attributes.{name}" for name in of_entity),
        )
    for resource in generation.resources:
        named = (resource.claim_names[scope],) if resource.scoped and scope in resource.claim_names else ()
        member = resource.entity_member
        found[resource.name] = (*named, *(f"{member}.{name}" for name in ENTITY_MEMBERS.get(scope, {}) if member))
    return {where: paths for where, paths in found.items() if paths}


def unasked(generation: Generation) -> dict[str, tuple[str, ...]]:
    """What is there whatever the scopes, apart from entity-info, which needs one."""
    records = {ID_TOKEN: answers.id_token(generation)}
    records |= {each.name: answers.resource(generation, each) for each in generation.resources}
    return {
        where: tuple(member.name for member in record.members if _is_unasked(member))
        for where, record in records.items()
    }


def _is_unasked(member: Member) -> bool:
    return "scope" not in member.when and member.when != answers.IF_SUBJECT_ENTITY


def claims() -> str:
    """The page of claims."""
    index = " · ".join(f"[{each.name}](#{each.name})" for each in ORDER)
    sections = "".join(map(_generation, ORDER))
    attributes = "".join(
        f"\n### {title}\n\n{table(record.members)}"
        for title, record in (
            ("Attributes of the person", answers.PERSON_ATTRIBUTES),
            ("Attributes of the entity", answers.ENTITY_ATTRIBUTES),
        )
    )
    return f"{_CLAIMS}\n{index} · [attributes](#attributes)\n{sections}\n## Attributes\n\nUnder `sub_attributes` and `entity_info`.\n{attributes}"


def _generation(generation: Generation) -> str:
    places = [ID_TOKEN, *(resource.name for resource in generation.resources)]
    always = unasked(generation)
    rows = [["`openid` (required)", *(_cell(always[place]) for place in places)]]
    for scope in generation.scopes[1:]:
        adds = granted(generation, scope)
        rows.append([f"`{scope}`", *(_cell(adds.get(place, ())) for place in places)])
    scopes = "".join(f"| {' | '.join(row)} |\n" for row in (["Scope", *places], ["---"] * (len(places) + 1), *rows))
    parts = [f"\n## {generation.name}\n\n### Scopes in {generation.name}\n\n{scopes}{_notes(generation)}"]
    records = [answers.id_token(generation), answers.access_token(generation)]
    records += [answers.resource(generation, resource) for resource in generation.resources]
    titles = [ID_TOKEN, "access token", *(resource.name for resource in generation.resources)]
    for title, record in zip(titles, records, strict=True):
        parts.append(
            f"\n### {title[0].upper()}{title[1:]} in {generation.name}\n\n{record.about}\n\n{table(record.members)}"
        )
        parts += _nested(record)
        tokens = recorded(generation.name)["tokens"]
        parts.append(f"\nExample:\n\n{shown(tokens[title])}")
        if title == ID_TOKEN and record.one_of:
            parts.append(
                f"\nThe claims for a client with `subject: entity`:\n\n{shown(tokens[title + OTHER_CLIENT]['claims'])}"
            )
    return "".join(parts)


def _notes(generation: Generation) -> str:
    notes = []
    if generation.packed_subject:
        notes.append("The ID token has every fact about both parties, whatever the scopes.")
    else:
        notes.append(
            "For a client registered with `subject: entity` the two sides of the ID token change places: "
            "`sub` and `sub_attributes` are the entity's, and `act` has the person's."
        )
    for resource in generation.resources:
        if not resource.scoped:
            notes.append(
                f"{resource.name} has its blocks whatever the scopes; `{resource.claim_names['tpauthinfo']}` if there is a row."
            )
        if resource.entity_member:
            notes.append(f"{resource.name} needs at least one `entity.*` scope, else 403 `insufficient_scope`.")
    return "".join(f"\n{note}\n" for note in notes)


def _cell(paths: tuple[str, ...]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def _nested(record: Record) -> Iterator[str]:
    """The tables of the objects of a token; blocks and attributes stand elsewhere."""
    for member in record.members:
        shape = member.shape
        known = shape in (answers.PERSON_ATTRIBUTES, answers.ENTITY_ATTRIBUTES)
        if isinstance(shape, Record) and not known:
            yield f"\n`{member.name}`:\n\n{table(shape.members)}"


def authorization_data() -> str:
    """The page of auth_info and tp_auth_info."""
    blocks: Mapping[str, Record] = {"auth_info": answers.AUTH_INFO, "tp_auth_info": answers.TP_AUTH_INFO}
    tokens = recorded("current")["tokens"]
    parts = [_DATA]
    for name, record in blocks.items():
        rows = "".join(f"| `{_short(path)}` | {kind} | {meaning} |\n" for path, kind, meaning in _paths(record, ""))
        parts.append(f"\n## {name}, member by member\n\n| Path | Type | Meaning |\n|---|---|---|\n{rows}")
        example = tokens[_EXAMPLES[name]]["claims"][name]
        parts.append(
            f"\nA whole example, as `{_EXAMPLES[name]}` in [examples/current.json](examples/current.json):\n\n{shown({name: example})}"
        )
    parts.append(_wire_forms(tokens))
    parts.append(_legacy())
    return "".join(parts)


def _wire_forms(tokens: dict[str, Any]) -> str:
    text = tokens[f"userinfo{OTHER_CLIENT}"]["claims"]
    return (
        "\n## Two wire forms\n\nBy default both are JSON objects, as above. A client registered with `stringified_blocks: true` gets strings that "
        "contain the same JSON: parse the JWT's payload, then parse the string again. The whole payload of such a userinfo response:\n\n"
        f"{shown(text)}\nIn code, for both forms:\n\n"
        '```python\nblock = claims.get("auth_info")\nif isinstance(block, str):\n    block = json.loads(block)\n'
        'for service in block["Result_Set"]["ESrvc_Result"] if block else []:\n'
        '    for row in service["Auth_Result_Set"]["Row"]:\n'
        '        print(service["CPESrvcID"], row["CPRole"], row["EndDate"])\n```\n'
    )


def _legacy() -> str:
    for generation in ORDER:
        for resource in generation.resources:
            if not resource.scoped:
                claims = recorded(generation.name)["tokens"][resource.name]["claims"]
                names = " and ".join(f"`{name}`" for name in resource.claim_names.values())
                return (
                    f"\n## In {generation.name}\n\n{resource.name} calls them {names}; the content is the same. The whole payload:\n\n"
                    f"{shown(claims)}"
                )
    return ""


def _paths(shape: Shape, path: str) -> Iterator[tuple[str, str, str]]:
    match shape:
        case Record():
            for member in shape.members:
                inner = f"{path}.{member.name}" if path else member.name
                inner += "[]" if isinstance(member.shape, ListOf) else ""
                yield inner, _kind(member.shape), member.meaning
                yield from _paths(member.shape, inner)
        case ListOf():
            yield from _paths(shape.item, path)
        case Either() | Scalar():
            return


def _short(path: str) -> str:
    """The last parts of a path, as the specification writes it."""
    parts = path.split(".")
    return path if len(parts) <= _SHOWN_PARTS else f"...{'.'.join(parts[-_SHOWN_PARTS:])}"


def _kind(shape: Shape) -> str:
    if isinstance(shape, ListOf):
        return "array of object" if isinstance(shape.item, Record) else said(shape)
    return "object" if isinstance(shape, Record) else said(shape)
