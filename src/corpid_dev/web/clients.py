"""Pages that register clients in developer mode (D66)."""

from __future__ import annotations

from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

import msgspec

from corpid.flows.authentication import browsers, interactions
from corpid.flows.directory.write import Refused
from corpid.flows.encrypted_values import StoredForm
from corpid.rules.directory.records import Conflict
from corpid.rules.oauth import parameters
from corpid.rules.oauth.client_registration import IssuerRules, RegistrationFault, used_generations
from corpid.rules.oauth.pasted_keys import read_pasted
from corpid.texts import Phrase, phrase
from corpid.web.context import WebContext, with_parameter
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.pages.client_fields import (
    CLIENT_ID,
    FIELDS,
    INSTEAD,
    PREFIXES,
    Choices,
    FieldGroup,
    add_faults,
    choices_of,
    fields_of,
    mistakes,
    new_values,
    opens_rare,
    read,
    read_form,
    values_of,
)
from corpid.web.pages.components import (
    Actions,
    Cell,
    Code,
    Facts,
    FieldError,
    ForeignText,
    Form,
    FormView,
    Frame,
    Heading,
    Items,
    Label,
    Link,
    Page,
    Snippet,
    Snippets,
    Value,
    View,
    ViewPart,
    table,
)
from corpid.web.pages.errors import refusal_of
from corpid.web.pages.public_pages import not_found
from corpid.web.pages.responses import page_for_browser, page_response, require_own_form, see_other
from corpid.web.pages.snippets import curl_with, members_of, snippets
from corpid.web.sites import FieldNames
from corpid_dev.flows import clients as flow
from corpid_dev.flows.clients import ClientRefused
from corpid_dev.web import stored_forms
from corpid_dev.web.paths import CLIENTS_PATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.nodes import Json
    from corpid.rules.oauth.generations import Generation
    from corpid.rules.oauth.records import Client
    from corpid_dev.web.mode import Mode

_FORM: Final = "developer-client"
_NAMES: Final = FieldNames(names=frozenset({"form_token", "step", "decision", "client_id", *FIELDS}), prefixes=PREFIXES)
_CHECK: Final = "check"
_MOST_SERVICES: Final = 25
"""ticked at first: a form has a hundred fields at most"""
LEGACY_DAYS: Final = 365
"""for which a new client gets a generation that ends"""
_SAVED: Final = "saved"
HEADING: Final = phrase("Clients")
_OWN: Final = Label(phrase("The demo's own"))
REGISTERED: Final = phrase("The client is registered, and can be used at once.")


class DeveloperClientForm(FormView, frozen=True, kw_only=True):
    """The form of a client, with advice.

    Fields: client_id of a new one, its members.
    """

    template: ClassVar[str] = "developer/client_form.html"

    heading: Phrase
    groups: tuple[FieldGroup, ...]
    more: tuple[FieldGroup, ...]
    more_open: bool
    new: bool
    identifier: str = "client_id"
    client_id: str = ""
    back: str
    checked: bool = False
    """whether this answers a check"""
    advice: Mapping[str, tuple[str, ...]]
    """member → sentences, in English"""


async def clients(request: Request, web: WebContext, mode: Mode) -> Response:
    """The list of clients (D66)."""
    context = await page_request(request, web.provider)
    found = await flow.clients(context)
    rows = (
        (
            Link(url=_path(web, "client", each.client_id), text=each.client_id),
            Cell(values=(each.name, _OWN)) if each.client_id in mode.developer.own_clients else each.name,
            ", ".join(one.name for one in used_generations(each, web.client_rules)),
        )
        for each in found
    )
    view = Page(
        frame=Frame(up=mode.up, under_way=True),
        heading=HEADING,
        saved=phrase("The client has been removed.") if "removed" in request.query_params else None,
        parts=(
            phrase("Developer mode: register your application, and get the commands and settings that it needs."),
            Actions((Link(url=_path(web, "new"), text=phrase("Register a client")),), main=True),
            table(phrase("Clients by identifier"), (phrase("Identifier"), phrase("Name"), phrase("Generations")), rows),
        ),
    )
    return page_response(request, web.renderer, view)


async def pages(request: Request, web: WebContext, mode: Mode) -> Response:
    """The pages under the list: new, client, edit and remove (D66)."""
    context = await page_request(request, web.provider)
    page, _, client_id = str(request.path_params["rest"]).partition("/")
    found = None
    if page != "new":
        try:
            found = await flow.client(context, client_id)
        except Refused:
            return await not_found(request, web)
    own = client_id in mode.developer.own_clients
    at = _At(request=request, web=web, mode=mode, context=context, page=page, found=found)
    if page == "client" and found is not None and request.method == "GET":
        return page_response(request, web.renderer, await _client(at, found, own=own))
    if own or (page == "new" and client_id):
        return await not_found(request, web)
    if page in {"new", "edit"}:
        return await (_submitted(at) if request.method == "POST" else _opened(at))
    if page == "remove" and found is not None:
        return await (_removed(at, found) if request.method == "POST" else _asked(at, found))
    return await not_found(request, web)


class _At(ViewPart, frozen=True, kw_only=True):
    request: Request
    web: WebContext
    mode: Mode
    context: RequestContext
    page: str
    found: Client | None
    """the client of the address"""

    @property
    def here(self) -> str:
        return _path(self.web, self.page, self.found.client_id if self.found else "")

    @property
    def above(self) -> str:
        """The page to go back to."""
        return _path(self.web, "client", self.found.client_id) if self.found else self.web.base_path + CLIENTS_PATH

    @property
    def served(self) -> tuple[Generation, ...]:
        return tuple(self.web.provider.policy.served)


def _path(web: WebContext, page: str, client_id: str = "") -> str:
    path = f"{web.base_path}{CLIENTS_PATH}/{page}"
    return f"{path}/{quote(client_id, safe='')}" if client_id else path


async def _client(at: _At, found: Client, *, own: bool) -> View:
    generations = used_generations(found, at.web.client_rules)
    advised = await flow.advise_client(at.context, found, at.web.client_rules)
    facts: tuple[tuple[Phrase, Value], ...] = (
        (phrase("Identifier"), Code(found.client_id)),
        (phrase("Redirect URIs"), ", ".join(found.redirect_uris)),
        (phrase("Scopes"), ", ".join(found.scopes)),
        *(((phrase("Services whose roles it reads"), ", ".join(found.services)),) if found.services else ()),
        (phrase("Generations"), ", ".join(each.name for each in generations)),
    )
    copied = () if own else _snippets(at, found, generations)
    change = Link(url=_path(at.web, "edit", found.client_id), text=phrase("Change"))
    remove = Link(url=_path(at.web, "remove", found.client_id), text=phrase("Remove"))
    keys = phrase(
        "The commands run an example of CorpID's source as this client. The file keys.json holds its private keys."
    )
    return Page(
        frame=Frame(up=Link(url=at.web.base_path + CLIENTS_PATH, text=HEADING), under_way=True),
        heading=phrase("Client {name}", name=found.name),
        saved=REGISTERED if _SAVED in at.request.query_params else None,
        parts=(
            Facts(facts),
            phrase("This is the demo's own client. It stays as it is.") if own else Actions((change,), danger=remove),
            *(
                (
                    Heading(phrase("Advice")),
                    Items(tuple(ForeignText(f"{_in_words(each)}.", "en", "ltr") for each in advised)),
                )
                if advised and not own
                else ()
            ),
            *((Heading(phrase("Commands and settings")), keys, Snippets(snippets=copied)) if copied else ()),
        ),
    )


def _snippets(at: _At, found: Client, generations: Iterable[Generation]) -> tuple[Snippet, ...]:
    issuer, authority = at.web.provider.policy.base_url, at.mode.developer.authority
    general = snippets(found, issuer, _here_first(at, generations), authority=authority)
    return (*general, order(found, issuer, curl_with(authority))) if general else ()


def order(client: Client, issuer: str, curl: str) -> Snippet:
    """The request that registers this client again, in CI for example."""
    members = {"client_id": client.client_id, **members_of(client)}
    body = msgspec.json.format(msgspec.json.encode(members), indent=2).decode().replace("'", "'\\''")
    text = f"{curl} {issuer}{CLIENTS_PATH} -H 'Content-Type: application/json' -d '{body}'"
    return Snippet(title="Register it again, in CI", text=text)


def _here_first(at: _At, generations: Iterable[Generation]) -> Generation | None:
    """The newest of these generations, if possible one of this issuer."""
    every = list(generations)
    here = [each for each in every if each in at.served]
    return next(reversed(here or every), None)


def _in_words(fault: RegistrationFault) -> str:
    return f"{fault.member}: {fault.reason}"


async def _opened(at: _At) -> Response:
    browser = await browsers.recognise(at.context, cookie(at.request, at.web.cookie_name))
    form = await stored_forms.read_form(at.request, at.context, browser, at.here)
    choices = choices_of(at.web.client_rules, await flow.services(at.context))
    if form is None:
        values = values_of(at.found) if at.found else new_values(await proposed(at.web, at.context))
        return await page_for_browser(at.request, at.web, at.context, browser, partial(_form, at, values, choices))
    client_id = form.fields.get("client_id", "")
    typed = {name: form.fields.get(name, "") for name in FIELDS}
    value = _value(at, client_id, {**typed, "jwks": ""} if read_pasted(typed["jwks"]).fault else typed)
    checked = await flow.check(at.context, at.mode.developer, {**INSTEAD, **value}, at.web.client_rules)
    view = partial(
        _form,
        at,
        {**typed, "client_id": client_id},
        choices,
        errors=form.errors,
        advice=checked.advice,
        stored_form=form,
    )
    return await page_for_browser(at.request, at.web, at.context, browser, view)


async def proposed(web: WebContext, context: RequestContext) -> dict[str, object]:
    """The members that a new client begins with, at this issuer."""
    policy = web.provider.policy
    served = tuple(policy.served)
    chosen: dict[str, object] = dict(web.client_rules.issuers.get(policy.issuer_id, IssuerRules()).new_client)
    services = [each.service_id for each in await flow.services(context)]
    chosen["services"] = tuple(services[:_MOST_SERVICES])
    newest = served[-1]
    chosen["scopes"] = newest.scopes
    if not newest.pushed or not policy.is_first:
        chosen["generations"] = tuple(each.name for each in served)
    if any(each.ends for each in served) and "generations" in chosen:
        chosen["legacy_until"] = (date.fromisoformat(context.today) + timedelta(days=LEGACY_DAYS)).isoformat()
    if not policy.is_first:
        chosen["issuers"] = (policy.issuer_id,)
    return chosen


def _form(
    at: _At,
    values: Mapping[str, str],
    choices: Choices,
    browser_id: str,
    *,
    errors: tuple[FieldError, ...] = (),
    advice: Iterable[RegistrationFault] = (),
    stored_form: StoredForm | None = None,
) -> View:
    by_member: dict[str, tuple[str, ...]] = {}
    for each in advice:
        by_member[each.member] = (*by_member.get(each.member, ()), f"{each.reason[:1].upper()}{each.reason[1:]}."
                                  if not each.reason.startswith("http") else f"{each.reason}.")  # fmt: skip
    found = at.found
    return DeveloperClientForm(
        frame=Frame(
            form_token=interactions.form_token(at.context, browser_id, _FORM),
            up=Link(url=at.above, text=phrase("Go back")),
            under_way=True,
            here=with_parameter(at.here) if stored_form else at.here,
        ),
        action=at.here,
        heading=phrase("Change {name}", name=found.name) if found else phrase("Register a client"),
        groups=fields_of(values, choices, rare=False),
        more=fields_of(values, choices, rare=True),
        more_open=opens_rare(values, errors),
        new=found is None,
        client_id=values.get("client_id", ""),
        back=at.above,
        checked=stored_form is not None and stored_form.checked,
        advice=by_member,
        errors=errors,
    )


async def _submitted(at: _At) -> Response:
    """Check the form; save the client unless only that was asked for."""
    form = parameters.parse(await form_bytes(at.request), _NAMES)  # type: ignore[arg-type]  # asked only for `in`
    browser = await browsers.recognise(at.context, cookie(at.request, at.web.cookie_name))
    browser_id = browser.browser_id if browser else ""
    require_own_form(at.context, form, browser_id, _FORM)
    typed = {**dict.fromkeys(FIELDS, ""), **read_form(form)}
    client_id = at.found.client_id if at.found else form.get("client_id", "").strip()
    errors = mistakes({**typed, CLIENT_ID: client_id, "jwks": form.get("jwks", "")})
    value = _value(at, client_id, {**typed, "jwks": "" if read_pasted(typed["jwks"]).fault else typed["jwks"]})
    checked = await flow.check(at.context, at.mode.developer, {**INSTEAD, **value}, at.web.client_rules)
    errors = add_faults(errors, map(_in_words, checked.faults))
    if at.found is None and client_id and await _is_taken(at, client_id):
        errors.append(
            ("client_id", phrase("There is a client with this identifier. Change that one, or take another."))
        )
    # What each key is for, and its kid, is shown before the client is registered with what was chosen here.
    only_check = form.get("decision") == _CHECK or read_pasted(form.get("jwks", "")).completed
    if not errors and not only_check:
        try:
            saved = await flow.save(at.context, at.mode.developer, value, at.web.client_rules)
            return see_other(f"{_path(at.web, 'client', saved.client.client_id)}?{_SAVED}=1")
        except ClientRefused as refused:
            errors = add_faults(errors, map(_in_words, refused.faults))
        except Conflict as conflict:
            errors.append(("", refusal_of(conflict)))
    # Of pasted keys, only the public parts are left in `typed`.
    form_kept = StoredForm(
        fields={**{name: typed[name] for name in FIELDS}, "client_id": client_id},
        errors=tuple(errors),
        checked=only_check,
    )
    return await stored_forms.to_entered(at.context, browser_id, at.here, form_kept)


async def _is_taken(at: _At, client_id: str) -> bool:
    try:
        await flow.client(at.context, client_id)
    except Refused:
        return False
    return True


def _value(at: _At, client_id: str, typed: Mapping[str, str]) -> dict[str, Json]:
    """The client of the form, as an object of the admin API."""
    members: dict[str, Json] = {
        name: read(each, typed[name])  # type: ignore[misc]  # texts, numbers, and lists of them
        for name, each in FIELDS.items()
        if typed[name]
    }
    if at.found is not None and not at.found.enabled:
        members["enabled"] = False
    return members | ({"client_id": client_id} if client_id else {})


async def _asked(at: _At, found: Client) -> Response:
    browser = await browsers.recognise(at.context, cookie(at.request, at.web.cookie_name))
    return await page_for_browser(at.request, at.web, at.context, browser, partial(_removal, at, found))


def _removal(at: _At, found: Client, browser_id: str) -> View:
    gone = phrase("Nobody can sign in to it any more, and its tokens are refused. You can register it again.")
    return Page(
        frame=Frame(
            form_token=interactions.form_token(at.context, browser_id, _FORM),
            up=Link(url=at.above, text=phrase("Go back")),
            under_way=True,
            here=at.here,
        ),
        action=at.here,
        heading=phrase("Remove {name}?", name=found.name),
        back=at.above,
        parts=(gone, Form(button=phrase("Remove it"), danger=True)),
    )


async def _removed(at: _At, found: Client) -> Response:
    form = parameters.parse(await form_bytes(at.request), _NAMES)  # type: ignore[arg-type]  # asked only for `in`
    browser = await browsers.recognise(at.context, cookie(at.request, at.web.cookie_name))
    require_own_form(at.context, form, browser.browser_id if browser else "", _FORM)
    await flow.remove(at.context, at.mode.developer, found.client_id)
    return see_other(f"{at.web.base_path}{CLIENTS_PATH}?removed=1")
