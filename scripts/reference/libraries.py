"""docs/libraries.md: what each library can do, from its declaration and from the last run of `make interop`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from corpid_dev.relying_party.interfaces import CURRENT, FAPI2, INTERMEDIATE, LEGACY
from tests.interop.library_matrix.declarations import LIBRARIES, RESULTS, ROOT, Library, registration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_GENERATIONS: Final = (CURRENT, INTERMEDIATE, FAPI2, LEGACY)
_FENCES: Final = {".mjs": "js", ".py": "python", ".go": "go", ".rs": "rust", ".java": "java"}
_KEYS: Final = {"signing": {"kty": "EC", "…": "…"}, "encryption": {"kty": "EC", "…": "…"}}
_HEAD: Final = """# What your library can do

<!-- made by `make tables` from examples/libraries, and from declarations.py and results.json in tests/interop/library_matrix; `make interop` writes the results -->

Does your stack work with the generation that you need, and with how many lines? Relying parties of the public service
must move from `legacy` to `current` by 31 March 2027 ([how](legacy.md)).

**yes** means that `make interop` ran the program of this library, unchanged, against a running provider (to start one,
[get `corpid-dev`](operate.md#the-command-corpid)): a person signed in, and the ID token and the roles were read and
verified, both with the defaults and with the [preset](legacy.md#the-preset-public-service) `public-service` (encrypted
userinfo, blocks as text). The same run shows that each program refuses a callback of another sign-in, an ID token that
another key signed, and altered userinfo. **Lines** are those of the shortest working piece below, for all its
generations and without comments and imports. It connects, makes the request, redeems the code, verifies and reads the
roles; sessions and pages are yours.

"""
_AFTER: Final = """
- **.NET**: [a page with the settings that you need](dotnet.md), untested.
- **Any other library** was not tried. [With another library](relying-parties.md#with-another-library) says what to
  configure. Without pushed requests or DPoP you have to add them, as the pieces for Go and Spring do.
- **A library that knows only client secrets** works with no generation. The pushed request and the token endpoint
  refuse it with 401 `invalid_client` ([assertion_type](reference/errors.md#assertion_type)); in developer mode the
  description says *this provider knows private_key_jwt only, and has no client secrets*.
- **Server nonces** are off unless the operator turns on `dpop_nonces`. Then a request has to be repeated once with the
  nonce; each section below says if the piece does that.

## The registration in the pieces

Each piece reads one relying party in one generation from `rp`. For `current`:

"""
_VALUES: Final = """
The keys are those of `corpid client keys`. The generations differ in:

"""
_BETWEEN: Final = """
With the preset `public-service`, the ID token is encrypted and userinfo is signed in every generation, and each block
is text that contains JSON: parse it once more. A program for `current` alone can leave out every branch that these
members choose. What every relying party must check is in [With another
library](relying-parties.md#with-another-library).
"""


def page() -> str:
    """The whole page."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    sections = "".join(_section(each) for each in LIBRARIES.values())
    return _HEAD + _overview(results) + _AFTER + _sample() + _VALUES + _values() + _BETWEEN + sections


def _overview(results: Mapping[str, Any]) -> str:
    names = [f"`{each.name}`" for each in _GENERATIONS]
    rows = [["Library", "Language", "Tested versions", *names, "You write", "Lines", "Run on"], ["---"] * 10]
    for each in LIBRARIES.values():
        runs = results[each.name]
        versions = {f"`{name}` {version}": None for run in runs.values() for name, version in run["versions"].items()}
        rows.append(
            [
                f"[{each.name}](#{_anchor(each.name)})",
                each.language,
                ", ".join(versions),
                *("yes" if generation.name in runs else "no" for generation in _GENERATIONS),
                each.you_write,
                str(each.own_lines()),
                min(run["date"] for run in runs.values()),
            ]
        )
    return _table(rows)


def _sample() -> str:
    told = {
        **registration("https://op.example", "my-rp", _KEYS, CURRENT),
        "redirect_uri": "https://rp.example/callback",
    }
    lines = (f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in told.items())
    return "```json\n{\n" + ",\n".join(lines) + "\n}\n```\n"


def _values() -> str:
    told = [registration("", "", _KEYS, each) for each in _GENERATIONS]
    differing = [name for name in told[0] if any(each[name] != told[0][name] for each in told)]
    rows = [["Member", *(f"`{each.name}`" for each in _GENERATIONS)], ["---"] * 5]
    return _table([*rows, *([f"`{name}`", *(_value(each[name]) for each in told)] for name in differing)])


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "<br>".join(f"`{name}={each}`" for name, each in value.items())
    return f"`{json.dumps(value)}`" if isinstance(value, bool) else f"`{value}`"


def _section(library: Library) -> str:
    rows = [["Works as it is", library.as_it_is], ["Your lines add", library.added]]
    if library.impossible:
        names = ", ".join(f"`{name}`" for name in library.impossible)
        rows.append([f"Impossible: {names}", "; ".join(dict.fromkeys(library.impossible.values()))])
    rows.append(["Server nonces", "in the piece" if library.repeats_with_nonce else "not in the piece"])
    program = library.program.relative_to(ROOT).as_posix()
    fence = _FENCES[library.program.suffix]
    piece = "\n".join(library.piece())
    return (
        f"\n## {library.name}\n\n"
        + _table([["", ""], ["---"] * 2, *rows])
        + f"\nThe shortest working piece ([the whole program](../{program})):\n\n```{fence}\n{piece.rstrip()}\n```\n"
    )


def _anchor(heading: str) -> str:
    kept = (letter for letter in heading.lower() if letter.isalnum() or letter in " -_")
    return "".join(kept).replace(" ", "-")


def _table(rows: Iterable[Iterable[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |") for row in rows)
