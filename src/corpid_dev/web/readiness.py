"""The page that checks a relying party, and its report (D66).

What developers read is in English everywhere.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlsplit

from starlette.responses import Response

from corpid.flows.authentication import browsers, interactions
from corpid.flows.encrypted_values import StoredForm
from corpid.rules.oauth import parameters
from corpid.texts import Phrase, phrase
from corpid.web.context import WebContext, with_parameter
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.pages.components import FieldError, FormView, Frame
from corpid.web.pages.public_pages import not_found
from corpid.web.pages.responses import NO_STORE, page_for_browser, require_own_form, see_other
from corpid_dev.flows.readiness_runs import Run, RunInProgress, RunRequest, Runs
from corpid_dev.web import stored_forms
from corpid_dev.web.paths import DEVELOPER_PATH, READINESS_PATH, TRAFFIC_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from corpid.flows.request_context import RequestContext
    from corpid_dev.flows.people import Developer
    from corpid_dev.web.mode import Mode

_FORM: Final = "readiness"
_FIELDS: Final = frozenset({"form_token", "step", "url", "signed_in", "person", "entity"})
LONGEST: Final = 2000
"""characters of an address"""
TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {"html": "text/html; charset=utf-8", "json": "application/json", "xml": "application/xml"}
)
"""of the report's files, by the end of their names"""


EMPTY: Final[Mapping[str, str]] = MappingProxyType(dict.fromkeys(("url", "signed_in", "person", "entity"), ""))
"""the form's fields"""


class ReadinessPage(FormView, frozen=True, kw_only=True):
    """A form, and the run under way or the last one.

    Fields and error ids: url, signed_in, person, entity.
    """

    template: ClassVar[str] = "developer/readiness.html"
    heading: ClassVar[Phrase] = phrase("Readiness report")
    wide: ClassVar[bool] = True

    command: str
    """what does the same"""
    runs: bool
    """whether this provider checks relying parties itself"""
    people: tuple[tuple[str, str], ...] = ()
    typed: Mapping[str, str] = EMPTY
    run: Run | None = None
    traffic: str = ""
    """the address of the inspector"""


async def page(request: Request, web: WebContext, mode: Mode) -> Response:
    """Show the form and the last run; start or stop one."""
    context = await page_request(request, web.provider)
    browser = await browsers.recognise(context, cookie(request, web.cookie_name))
    if request.method == "POST":
        runs = mode.developer.readiness
        if runs is None:
            return await not_found(request, web)
        return await _submit(request, web, context, mode, runs, browser.browser_id if browser else "")
    form = await stored_forms.read_form(request, context, browser, web.base_path + READINESS_PATH)
    return await page_for_browser(request, web, context, browser, partial(_view, web, context, mode, form=form))


async def file(request: Request, web: WebContext, mode: Mode) -> Response:
    """The report of the last run as a file to keep."""
    runs, name = mode.developer.readiness, request.path_params["rest"]
    run = runs.latest if runs is not None else None
    kind = name.removeprefix("report.")
    if run is None or run.report is None or kind == name or kind not in TYPES:
        return await not_found(request, web)
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="readiness-{name}"'}
    return Response(run.report.file(kind), 200, headers, TYPES[kind])


def _view(
    web: WebContext,
    context: RequestContext,
    mode: Mode,
    browser_id: str,
    *,
    form: StoredForm | None,
) -> ReadinessPage:
    here, runs = web.base_path + READINESS_PATH, mode.developer.readiness
    run = runs.latest if runs is not None else None
    typed = form.fields if form else EMPTY
    if run is not None and not form:
        asked = run.asked
        typed = {"url": asked.url, "signed_in": asked.signed_in, "person": asked.user, "entity": asked.entity}
    return ReadinessPage(
        frame=Frame(
            form_token=interactions.form_token(context, browser_id, _FORM),
            under_way=True,
            here=with_parameter(here) if form else here,
            up=mode.up,
        ),
        action=here,
        command=f"corpid rp-check LOGIN-URL --developer {web.provider.policy.base_url}{DEVELOPER_PATH}",
        runs=runs is not None,
        people=tuple((each.user_name, f"{each.name} ({each.user_name})") for each in mode.developer.people.values()),
        typed=typed,
        run=run,
        traffic=web.base_path + TRAFFIC_PATH,
        errors=form.errors if form else (),
    )


async def _submit(
    request: Request, web: WebContext, context: RequestContext, mode: Mode, runs: Runs, browser_id: str
) -> Response:
    form = parameters.parse(await form_bytes(request), _FIELDS)
    require_own_form(context, form, browser_id, _FORM)
    here = web.base_path + READINESS_PATH
    if form.get("step", "") == "stop":
        await runs.stop()
        return see_other(here)
    typed = {name: form.get(name, "").strip() for name in EMPTY}
    errors = _errors(typed, mode.developer)
    if not errors:
        try:
            runs.start(_asked(typed, mode.developer, web.provider.policy.base_url))
        except RunInProgress:
            errors = (("", phrase("A check is running. Wait until it ends, or stop it.")),)
        else:
            return see_other(here)
    fields = {name: text[: LONGEST + 1] for name, text in typed.items()}
    return await stored_forms.to_entered(context, browser_id, here, StoredForm(fields=fields, errors=errors))


def _errors(typed: Mapping[str, str], developer: Developer) -> tuple[FieldError, ...]:
    """The faults of the form, by field."""
    found: list[FieldError] = []
    if not _is_address(typed["url"]):
        found.append(("url", phrase("Enter an address that begins with http:// or https://, without a password.")))
    if typed["person"] and not developer.is_test_person(typed["person"]):
        found.append(("person", phrase("Choose one of the test people.")))
    found += [
        (name, phrase("Enter at most {limit} characters.", limit=LONGEST))
        for name, text in typed.items()
        if len(text) > LONGEST
    ]
    return tuple(found)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc


def _asked(typed: Mapping[str, str], developer: Developer, issuer: str) -> RunRequest:
    """The check; its default is the first test person and entity."""
    user = typed["person"] or next(iter(developer.people.values())).user_name
    known = next((each for each in developer.people.values() if each.user_name == user), None)
    entity = typed["entity"] or (known.entities[0] if known is not None and known.entities else "")
    return RunRequest(issuer=issuer, url=typed["url"], user=user, entity=entity, signed_in=typed["signed_in"])
