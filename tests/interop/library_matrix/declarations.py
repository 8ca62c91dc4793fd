"""The libraries of docs/libraries.md: their pins, the generations that they can speak, and what they lack."""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid_dev.relying_party.interfaces import Interface

ROOT: Final = Path(__file__).parents[3]
FOLDER: Final = ROOT / "examples" / "libraries"
RESULTS: Final = Path(__file__).with_name("results.json")
"""library → generation → the last run of `make interop` that signed somebody in: date, versions, hash of the program"""

REDIRECT_URI: Final = "http://127.0.0.1:9/callback"
"""nobody listens there: the browser stops before it"""


def registration(issuer: str, client_id: str, keys: Mapping[str, Any], interface: Interface) -> dict[str, Any]:
    """What a program reads from its file: one relying party in one generation."""
    return {
        "issuer": issuer,
        "client_id": client_id,
        "redirect_uri": REDIRECT_URI,
        "signing": keys["signing"],
        "encryption": keys["encryption"],
        "parameters": {"scope": "openid authinfo tpauthinfo", **interface.parameters},
        "pushed": interface.pushed,
        "bound": interface.bound,
        "id_token_encrypted": interface.id_token_enc is not None,
        "userinfo_signed": interface.userinfo.signed,
        "resource": interface.userinfo.endpoint,
    }


def _npm(package: str) -> str:
    lock = json.loads((FOLDER / "node" / "package-lock.json").read_text(encoding="utf-8"))
    return str(lock["packages"][f"node_modules/{package}"]["version"])


def _helper(package: str) -> str:
    lock = json.loads((FOLDER / "legacy_helper" / "package-lock.json").read_text(encoding="utf-8"))
    return str(lock["packages"][f"node_modules/{package}"]["version"])


def _pypi(package: str) -> str:
    return _found(ROOT / "requirements" / "dev.txt", rf"^{re.escape(package)}==(\S+)")


def _maven(jar: str) -> str:
    return _found(ROOT / "examples" / "java" / "dependencies.sha256", rf"  {re.escape(jar)}-([\d.]+)\.jar$")


def _spring(jar: str) -> str:
    return _found(FOLDER / "spring" / "dependencies.sha256", rf"  {re.escape(jar)}-([\d.]+)\.jar$")


def _go(module: str) -> str:
    return _found(FOLDER / "go" / "go.mod", rf"^\t{re.escape(module)} v(\S+)")


def _crate(name: str) -> str:
    lock = tomllib.loads((FOLDER / "rust" / "Cargo.lock").read_text(encoding="utf-8"))
    return next(str(package["version"]) for package in lock["package"] if package["name"] == name)


def _found(lock: Path, pattern: str) -> str:
    match = re.search(pattern, lock.read_text(encoding="utf-8"), re.MULTILINE)
    assert match, f"{lock}: nothing matches {pattern}"
    return match[1]


@dataclass(frozen=True, kw_only=True)
class Library:
    """One library, or libraries used together."""

    name: str
    language: str
    packages: tuple[str, ...]
    pinned: Callable[[str], str]
    """package → the version that is locked"""
    program: Path
    you_write: str
    """in a few words, for the overview"""
    as_it_is: str
    """which parts it does alone"""
    added: str
    """which parts its program adds"""
    speaks: tuple[str, ...] = ("current", "intermediate", "fapi2", "legacy")
    impossible: Mapping[str, str] = field(default_factory=dict)
    """generation that it cannot speak → the reason"""
    repeats_with_nonce: bool = False
    """whether the piece takes up `use_dpop_nonce`"""
    members: Mapping[str, Any] = field(default_factory=dict)
    """what its client is registered with in addition"""

    def run(self) -> dict[str, Any]:
        """What a result is about: the locked version of each package, and this very program."""
        program = hashlib.sha256(self.program.read_bytes()).hexdigest()
        return {"versions": {package: self.pinned(package) for package in self.packages}, "program": program}

    def piece(self) -> list[str]:
        """The part of the program that the page shows."""
        lines = self.program.read_text(encoding="utf-8").splitlines()
        marks = [place for place, line in enumerate(lines) if line.strip().lstrip("/#").strip() in {"piece", "end"}]
        shown = [line for begin, end in zip(marks[::2], marks[1::2], strict=True) for line in lines[begin + 1 : end]]
        return textwrap.dedent("\n".join(shown)).strip("\n").splitlines()

    def own_lines(self) -> int:
        """Lines of the piece that are neither empty nor a comment."""
        return sum(1 for line in self.piece() if line.strip() and not line.strip().startswith(("//", "#")))


OPENID_CLIENT: Final = Library(
    name="openid-client",
    language="Node",
    packages=("openid-client", "jose"),
    pinned=_npm,
    program=FOLDER / "node" / "openid_client.mjs",
    you_write="one line that turns on the check of signatures",
    as_it_is="PAR, DPoP, `private_key_jwt` with the issuer as `aud`, PKCE, `iss` of the callback, decryption of the ID token, signed userinfo",
    added="`enableNonRepudiationChecks`: without this line it verifies no signature of the ID token and of userinfo. For `legacy`, a `Configuration` whose `userinfo_endpoint` is `authorization-info_endpoint`",
    repeats_with_nonce=True,
)
OAUTH4WEBAPI: Final = Library(
    name="oauth4webapi",
    language="Node, browsers, edge runtimes",
    packages=("oauth4webapi", "jose"),
    pinned=_npm,
    program=FOLDER / "node" / "oauth4webapi.mjs",
    you_write="decryption, and the calls that check signatures",
    as_it_is="PAR, DPoP, `private_key_jwt` with the issuer as `aud`, PKCE, `iss` of the callback, signed userinfo",
    added="a function that decrypts (3 lines with `jose`); `validateApplicationLevelSignature` for the ID token and for userinfo, which it otherwise does not verify. For `legacy`, metadata whose `userinfo_endpoint` is `authorization-info_endpoint`",
)
AUTHLIB: Final = Library(
    name="Authlib",
    language="Python",
    packages=("authlib", "joserfc", "requests"),
    pinned=_pypi,
    program=FOLDER / "python" / "authlib_rp.py",
    you_write="PAR, DPoP, decryption, the assertion",
    as_it_is="PKCE, `state`, the token request, the claims of the ID token (`CodeIDToken`)",
    added="an assertion that lives 60 seconds and names the issuer as `aud` (its own lives an hour, which is refused); the pushed request; DPoP, as a session that adds the proof; decryption of the ID token and verification of userinfo with joserfc, which it depends on; `iss` of the callback",
)
REQUESTS_OAUTH2CLIENT: Final = Library(
    name="requests-oauth2client",
    language="Python",
    packages=("requests-oauth2client", "jwskate"),
    pinned=_pypi,
    program=FOLDER / "python" / "requests_oauth2client_rp.py",
    you_write="the checks of userinfo",
    as_it_is="PAR, DPoP, PKCE, `state`, decryption and signature of the ID token, `nonce`, `at_hash`",
    added="the issuer as `aud` of the assertion; `iss` and `aud` of the ID token, which it does not compare; verification of userinfo, which it expects as JSON; whether callbacks carry `iss`. For `legacy`, metadata whose `userinfo_endpoint` is `authorization-info_endpoint`",
    repeats_with_nonce=True,
)
JOSERFC: Final = Library(
    name="joserfc by hand",
    language="Python",
    packages=("joserfc", "httpx"),
    pinned=_pypi,
    program=FOLDER / "python" / "joserfc_rp.py",
    you_write="the protocol",
    as_it_is="signatures, encryption and the times of claims. There is no OAuth library in this row: every step of the protocol is in sight, to carry over to a language that is not listed",
    added="everything else. [plain_rp.py](../examples/python/plain_rp.py) also repeats a request with a server nonce",
)
NIMBUS: Final = Library(
    name="Nimbus OAuth 2.0 SDK",
    language="Java, Kotlin",
    packages=("oauth2-oidc-sdk", "nimbus-jose-jwt"),
    pinned=_maven,
    program=FOLDER / "java" / "Nimbus.java",
    you_write="the assertion's `aud`, the DPoP header, the checks of userinfo",
    as_it_is="PAR, DPoP proofs, PKCE, metadata whose issuer is compared, decryption and every check of the ID token, a validator of `at_hash`",
    added="the issuer as `aud` of the assertion (its own is the endpoint); `state` and `iss` of the callback; the DPoP header of each request; verification of userinfo by the same validator, since its own parser verifies nothing. [RelyingParty.java](../examples/java/RelyingParty.java) also repeats a request with a server nonce",
)
GO: Final = Library(
    name="x/oauth2 and go-jose",
    language="Go",
    packages=("golang.org/x/oauth2", "github.com/go-jose/go-jose/v4"),
    pinned=_go,
    program=FOLDER / "go" / "main.go",
    you_write="PAR, DPoP, the assertion, decryption, the checks of tokens",
    as_it_is="PKCE, the address of the authorization request, the token request; go-jose signs, decrypts and verifies",
    added="`private_key_jwt`, as two parameters; the pushed request; DPoP, as a `RoundTripper` that adds the proof; discovery; `state`, `iss`, `nonce` and `at_hash`. `go-oidc` takes over discovery and the checks of tokens once they are decrypted: [main.go](../examples/go/main.go)",
)
SPRING: Final = Library(
    name="Spring Security",
    language="Java, Kotlin",
    packages=("spring-security-oauth2-client", "spring-boot", "oauth2-oidc-sdk"),
    pinned=_spring,
    program=FOLDER / "spring" / "SpringRp.java",
    you_write="PAR, DPoP, the assertion, decryption, the checks of userinfo; for `legacy` the last three",
    as_it_is="metadata, `state`, `nonce`, PKCE (`requireProofKey`), the session, `iss`, `aud` and `exp` of the ID token",
    added="`private_key_jwt` with the issuer as `aud` (`PrivateKeyJWT` of the SDK that Spring comes with); for `legacy` also a `JwtDecoderFactory` that decrypts and allows ES256, and an `OidcUserService` that verifies a signed JWT. For the other generations also a resolver that [pushes the request](https://github.com/spring-projects/spring-security/issues/11301), and an interceptor that adds DPoP proofs: Spring's client has neither. Not included: `iss` of the callback and `at_hash`, which Spring does not compare. If several servers share an address, give them the same DPoP key",
)
RUST: Final = Library(
    name="openidconnect and josekit",
    language="Rust",
    packages=("openidconnect", "josekit"),
    pinned=_crate,
    program=FOLDER / "rust" / "src" / "main.rs",
    you_write="PAR, DPoP, the assertion, the token request, decryption",
    as_it_is="metadata and keys, the address of the authorization request with `state`, `nonce` and PKCE, every check of a signed ID token with ES256; josekit signs and decrypts",
    added="`private_key_jwt`; the pushed request; DPoP; the token request, because its own cannot read an encrypted ID token; `state` and `iss` of the callback; types for claims and metadata that it does not know",
)
_NO_MORE: Final = "it has no PAR, no DPoP and no parameter to add; the address of the authorization request is its own"
LEGACY_HELPER: Final = Library(
    name="singpass-myinfo-oidc-helper",
    language="Node",
    packages=("@govtechsg/singpass-myinfo-oidc-helper",),
    pinned=_helper,
    program=FOLDER / "legacy_helper" / "helper.mjs",
    you_write="`state` and `nonce`",
    as_it_is="everything that `legacy` needs: `private_key_jwt`, decryption and signature of the ID token, authorization-info",
    added="`state` and `nonce`, which it does not compare. It has no PKCE and reads blocks as text: the client must be registered with `pkce` `optional` and `stringified_blocks`, both defaults of the preset `public-service`. To leave `legacy`, change to openid-client, which needs a few lines more",
    speaks=("legacy",),
    impossible={"current": _NO_MORE, "intermediate": _NO_MORE, "fapi2": _NO_MORE},
    members={"pkce": "optional", "stringified_blocks": True},
)

LIBRARIES: Final[Mapping[str, Library]] = MappingProxyType(
    {
        each.name: each
        for each in (
            OPENID_CLIENT, OAUTH4WEBAPI, LEGACY_HELPER, AUTHLIB, REQUESTS_OAUTH2CLIENT, JOSERFC, NIMBUS, SPRING, GO, RUST,
        )
    }
)  # fmt: skip
