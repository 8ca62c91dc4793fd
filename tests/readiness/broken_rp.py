"""A relying party with at most one fault, named by the readiness case that must catch it.

Without a defect it is strict and passes every case. Where the defect's name stands is the check that is then left
out, so that a reader finds the fault by its name. It shares no code with the provider or with its sandbox.

    python -m tests.readiness.broken_rp --issuer http://localhost:8400 --defect id-token-nonce
"""

from __future__ import annotations

import argparse
import contextlib
import json
import secrets
import socket
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import httpx
import uvicorn
from joserfc import jwe
from joserfc.jwk import ECKey
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.machine import free_port
from tests.readiness.broken_trust import (
    DEFECTS,
    ENCRYPTION,
    HASTY_REQUESTS,
    TIMEOUT_SECONDS,
    Crash,
    Refused,
    Trust,
    base64url,
    document,
    succeeded,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.requests import Request
    from starlette.types import ASGIApp

SIGNED_IN: Final = "Signed in as"
FAILED: Final = "Sign-in failed"
SCOPE: Final = "openid authinfo tpauthinfo user.name entity.basic_profile.name"
ROLES: Final = frozenset({"Applicant", "Approver", "Checker", "Licensee", "Preparer", "Submitter", "Viewer"})
"""those of the demo's services, which a relying party that knows too few would list"""
HASTY_SECONDS: Final = 1


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What the callback needs of the request."""

    state: str
    nonce: str
    verifier: str
    key: ECKey


@dataclass(frozen=True, kw_only=True)
class Session:
    name: str
    roles: tuple[str, ...]


class RelyingParty(Trust):
    """A web application; `become` changes its defect while it runs."""

    def __init__(self, *, issuer: str, home: str, client_id: str = "broken-rp", defect: str = "") -> None:
        super().__init__(issuer=issuer, client_id=client_id)
        self.home, self.redirect_uri = home, f"{home}/callback"
        self.same_verifier, self.same_state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
        self.same_proof_key = ECKey.generate_key("P-256")
        self.become(defect)
        routes = [Route("/", self.welcome), Route("/login", self.login), Route("/callback", self.callback)]
        self.asgi: ASGIApp = Starlette(routes=routes, lifespan=self._lifespan)

    def become(self, defect: str) -> None:
        """Have this defect ("" for none), and nothing cached, no sessions and no attempts."""
        super().become(defect)
        self.after_failure = ""
        """a path of its own to which a person is sent instead of a page, as some relying parties do"""
        self.session_before_userinfo = False
        """whoever has an ID token is signed in, also if the page then says that it failed"""
        self.attempts: dict[str, Attempt] = {}
        self.sessions: dict[str, Session] = {}
        self.finished: dict[str, Session] = {}

    def registration(self, *services: str) -> dict[str, Any]:
        """The document that `corpid apply` registers it with (docs/directory.md)."""
        members = {"name": "Broken relying party", "redirect_uris": [self.redirect_uri], "scopes": SCOPE.split(),
                   "services": list(services), "jwks": self.jwks(),
                   "id_token_encryption_alg": ENCRYPTION[0], "userinfo_signing_alg": "ES256"}  # fmt: skip
        return {"clients": {self.client_id: members}}

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as self.http:
            yield

    # --- pages ------------------------------------------------------------------------------------------------

    async def welcome(self, request: Request) -> Response:
        session = self.sessions.get(request.cookies.get("session", ""))
        if session is None:
            return page("Nobody is signed in")
        return page(f"{SIGNED_IN} {session.name}", *session.roles)

    async def login(self, _: Request) -> Response:
        try:
            attempt, url = await self.begin()
        except (Refused, httpx.HTTPError) as problem:
            return page(FAILED, str(problem), status=400)
        attempt_id = secrets.token_urlsafe(32)
        if self.defect == "other-browser":
            attempt_id = attempt.state
        self.attempts[attempt_id] = attempt
        response = RedirectResponse(url, status_code=303)
        response.set_cookie("attempt", attempt_id, httponly=True, samesite="lax")
        return response

    async def callback(self, request: Request) -> Response:
        given = dict(request.query_params)
        try:
            session = self.finished.get(given.get("code", "")) if self.defect == "callback-repeated" else None
            session = session or await self.finish(self._attempt(request, given), request, given)
        except (Refused, httpx.HTTPError) as problem:
            if self.after_failure:
                return RedirectResponse(self.after_failure, status_code=303)
            failed = page(FAILED, str(problem), status=400)
            if self.session_before_userinfo and "userinfo" in str(problem):
                self._remember(failed, Session(name="somebody", roles=()))
            return failed
        self.finished[given["code"]] = session
        return self._remember(RedirectResponse("/", status_code=303), session)

    def _remember(self, response: Response, session: Session) -> Response:
        session_id = secrets.token_urlsafe(32)
        self.sessions[session_id] = session
        response.set_cookie("session", session_id, httponly=True, samesite="lax")
        response.delete_cookie("attempt", httponly=True, samesite="lax")
        return response

    def _attempt(self, request: Request, given: dict[str, str]) -> Attempt:
        """The attempt of this browser, for one callback."""
        attempt_id = given.get("state", "") if self.defect == "other-browser" else request.cookies.get("attempt", "")
        if (attempt := self.attempts.pop(attempt_id, None)) is None:
            raise Refused("this browser began no sign-in, or has finished it")
        return attempt

    # --- the sign-in ------------------------------------------------------------------------------------------

    async def begin(self) -> tuple[Attempt, str]:
        """Push a request; the attempt, and where to send the browser."""
        attempt = Attempt(
            state=self.same_state if self.defect == "state-fresh" else secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=self.same_verifier if self.defect == "pkce-fresh" else secrets.token_urlsafe(48),
            key=self.same_proof_key if self.defect == "proof-key-fresh" else ECKey.generate_key("P-256"),
        )
        metadata = await self.metadata(for_login=True)
        challenge = base64url(sha256(attempt.verifier.encode()).digest())
        request = {"response_type": "code", "client_id": self.client_id, "redirect_uri": self.redirect_uri,
                   "scope": SCOPE, "state": attempt.state, "nonce": attempt.nonce,
                   "code_challenge": challenge, "code_challenge_method": "S256",
                   "authentication_context_type": "APP_AUTHENTICATION_DEFAULT"}  # fmt: skip
        url = metadata["pushed_authorization_request_endpoint"]
        pushed = await self.ask("POST", url, attempt.key, form=request)
        if pushed.status_code >= 500 and self.defect == "par-unavailable":
            return attempt, f"{metadata['authorization_endpoint']}?{urlencode(request)}"
        if 400 <= pushed.status_code < 500 and self.defect == "par-error":
            return attempt, f"{metadata['authorization_endpoint']}?{urlencode(request)}"
        by_reference = {"client_id": self.client_id, "request_uri": document(pushed)["request_uri"]}
        return attempt, f"{metadata['authorization_endpoint']}?{urlencode(by_reference)}"

    async def finish(self, attempt: Attempt, request: Request, given: dict[str, str]) -> Session:
        """Check the callback, redeem the code, verify both tokens; who signed in."""
        code = await self._code(attempt, request, given)
        tokens = document(await self._redeem(attempt, code))
        if str(tokens.get("token_type")).lower() != "dpop" and self.defect != "token-type":
            raise Refused("the access token is not bound to our key")
        claims = await self._id_token(tokens, attempt)
        userinfo = await self._userinfo(str(tokens.get("access_token")), attempt)
        if "sub" not in claims and self.defect == "id-token-sub-missing":
            claims["sub"] = userinfo["sub"]
        if claims and userinfo.get("sub") != claims["sub"] and self.defect != "userinfo-sub":
            raise Refused("userinfo is about somebody else")
        name = claims.get("sub_attributes", {}).get("name", userinfo.get("sub", ""))
        return Session(name=name, roles=self._roles(userinfo))

    async def _code(self, attempt: Attempt, request: Request, given: dict[str, str]) -> str:
        if len(request.query_params.multi_items()) != len(given):
            raise Refused("the callback repeats a parameter")
        state, iss = given.get("state"), given.get("iss")
        if state != attempt.state:
            if "error" in given and self.defect == "error-callback-state":
                raise Crash("no sign-in has this state")
            if self.defect != ("state-missing" if state is None else "state-altered"):
                raise Refused("the state is of another sign-in")
        announced = (await self.metadata()).get("authorization_response_iss_parameter_supported")
        if (
            iss != self.issuer
            and (iss is not None or announced)
            and self.defect != ("iss-missing" if iss is None else "iss-altered")
        ):
            raise Refused("the callback is of another provider")
        if "code" not in given and self.defect != "error-callback":
            raise Refused(given.get("error", "the callback has no code"))
        return given.get("code", "")

    async def _redeem(self, attempt: Attempt, code: str) -> httpx.Response:
        redirect_uri = f"{self.redirect_uri}/" if self.defect == "baseline" else self.redirect_uri
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri,
                "code_verifier": attempt.verifier}  # fmt: skip
        url = (await self.metadata())["token_endpoint"]
        if self.defect == "token-slow":
            try:
                return await self.ask("POST", url, attempt.key, form=form, timeout=HASTY_SECONDS)
            except httpx.TimeoutException as late:
                raise Crash("no answer") from late
        answer = await self.ask("POST", url, attempt.key, form=form)
        if self.defect == "token-unavailable":
            for _ in range(HASTY_REQUESTS):
                if answer.status_code == 503:
                    answer = await self.ask("POST", url, attempt.key, form=form)
        if answer.status_code == 400:
            if self.defect == "code-unknown":
                raise Crash(answer.text)
            if self.defect == "token-error":
                answer = await self.ask("POST", url, attempt.key, form=form)
        return answer  # 503 as well: the person may sign in again after Retry-After, we do not

    async def _id_token(self, tokens: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
        token = str(tokens.get("id_token"))
        if token.count(".") == 4:
            try:
                plaintext = jwe.decrypt_compact(token, self.encryption, algorithms=list(ENCRYPTION)).plaintext
            except Exception as unreadable:  # of joserfc and of cryptography
                if self.defect == "id-token-other-key":
                    return {}
                raise Refused("the ID token cannot be decrypted") from unreadable
            token = (plaintext or b"").decode()
        elif self.defect != "id-token-not-encrypted":
            raise Refused("the ID token is not encrypted")
        claims = await self.verified(token, "id-token")
        nonce = claims.get("nonce")
        if nonce != attempt.nonce and self.defect != ("id-token-nonce-missing" if nonce is None else "id-token-nonce"):
            raise Refused("the ID token is of another sign-in")
        at_hash = base64url(sha256(str(tokens.get("access_token")).encode()).digest()[:16])
        if claims.get("at_hash") != at_hash and self.defect != "id-token-at-hash":
            raise Refused("the ID token is of another access token")
        if not isinstance(claims.get("sub"), str) and self.defect != "id-token-sub-missing":
            raise Refused("the ID token names nobody")
        return claims

    async def _userinfo(self, access_token: str, attempt: Attempt) -> dict[str, Any]:
        url = (await self.metadata())["userinfo_endpoint"]
        answer = await self.ask("GET", url, attempt.key, token=access_token)
        if answer.status_code >= 500 and self.defect == "userinfo-error":
            raise Crash(answer.text)
        if answer.status_code == 401 and self.defect == "userinfo-unauthorized":
            raise Crash(answer.text)
        return await self.verified(succeeded(answer).text, "userinfo")

    def _roles(self, userinfo: dict[str, Any]) -> tuple[str, ...]:
        services = ((userinfo.get("auth_info") or {}).get("Result_Set") or {}).get("ESrvc_Result") or []
        if self.defect == "userinfo-empty" and not services:
            raise Crash("the first service does not exist")
        rows = [(each["CPESrvcID"], row) for each in services for row in each["Auth_Result_Set"].get("Row") or []]
        if self.defect == "userinfo-extra-roles" and any(row["CPRole"] not in ROLES for _, row in rows):
            raise Crash("no such role")
        return tuple(f"{row['CPRole']} at {service}" for service, row in rows)


def page(heading: str, *lines: str, status: int = 200) -> HTMLResponse:
    listed = "".join(f"<li>{escape(line)}" for line in lines)
    content = f'<!doctype html><html lang="en"><title>Relying party</title><h1>{escape(heading)}</h1><ul>{listed}</ul>'
    return HTMLResponse(f'{content}<a href="/login">Sign in</a>', status, {"Cache-Control": "no-store"})


@contextmanager
def serving(asgi: ASGIApp, port: int) -> Iterator[None]:
    """Serve an application on 127.0.0.1, in a thread, until the context ends."""
    listening = socket.create_server(("127.0.0.1", port))
    server = uvicorn.Server(uvicorn.Config(asgi, log_level="critical", ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server has ended"
            time.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@contextmanager
def running(*, issuer: str, client_id: str = "broken-rp", defect: str = "", port: int = 0) -> Iterator[RelyingParty]:
    """A relying party that answers at its `home`; whoever runs it registers it, by `jwks` or `registration`."""
    port = port or free_port()
    made = RelyingParty(issuer=issuer, home=f"http://127.0.0.1:{port}", client_id=client_id, defect=defect)
    with serving(made.asgi, port):
        yield made


def main() -> None:
    """Print what registers it, and serve until it is interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--issuer", default="http://localhost:8400")
    parser.add_argument("--client-id", default="broken-rp")
    parser.add_argument("--defect", default="", choices=["", *DEFECTS])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--service", action="append", default=[])
    given = parser.parse_args()
    with (
        running(issuer=given.issuer, client_id=given.client_id, defect=given.defect, port=given.port) as made,
        contextlib.suppress(KeyboardInterrupt),
    ):
        print(json.dumps(made.registration(*given.service), indent=1))
        print(f"{made.home}/login", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
