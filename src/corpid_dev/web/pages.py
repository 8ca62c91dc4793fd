"""The page for anybody acting for anything (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self
from urllib.parse import urlencode

import msgspec

from corpid.flows.authentication import browsers, interaction_context, interactions
from corpid.flows.encrypted_values import StoredForm
from corpid.jose.encoding import MalformedToken, json_object
from corpid.rules.oauth import parameters
from corpid.rules.oauth.errors import InvalidRequest
from corpid.texts import Phrase, phrase
from corpid.web.context import SIGN_IN, WebContext, interaction_path, with_parameter
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.pages.components import FieldError, FormView, Frame, Link, ViewPart
from corpid.web.pages.responses import page_for_browser, require_own_form, see_other
from corpid_dev.flows import sign_ins
from corpid_dev.flows.sign_ins import Anybody
from corpid_dev.web import stored_forms
from corpid_dev.web.paths import ANYBODY_PATH, CLIENTS_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.request_context import RequestContext
    from corpid_dev.web.mode import Mode

AS: Final = "as"
"""the parameter that holds the person"""
_FORM: Final = "anybody"
_FIELDS: Final = frozenset({"form_token", "step", "name", "entity", "entity_name", "roles", "third_party", "json"})
_OWN: Final = ("service",)
_OTHERS: Final = ("client_entity", "service")


class PersonFields(ViewPart, frozen=True, kw_only=True):
    """The typed values of the form for anybody."""

    name: str = ""
    entity: str = ""
    entity_name: str = ""
    roles: str = ""
    third_party: str = ""
    json: str = ""

    @classmethod
    def from_form(cls, form: Mapping[str, str]) -> Self:
        """The texts of a form."""
        return cls(**{name: form.get(name, "") for name in cls.__struct_fields__})


class AnybodyPage(FormView, frozen=True, kw_only=True):
    """A person who acts for anything, as fields or as JSON.

    Fields and error ids: name, entity, entity_name, roles, third_party, json.
    """

    template: ClassVar[str] = "developer/anybody.html"
    heading: ClassVar[Phrase] = phrase("Anybody, acting for anything")

    typed: PersonFields = PersonFields()
    made: str = ""
    """the name of the person, once they can sign in"""
    link: str = ""
    """the address that opens the page with this person again"""
    clients: str = ""
    """the address of the page that registers clients"""


async def anybody(request: Request, web: WebContext, mode: Mode) -> Response:
    """Describe a person and let them sign in at once (D66)."""
    context = await page_request(request, web.provider)
    sent = cookie(request, web.cookie_name)
    browser = await browsers.recognise(context, sent)
    if request.method == "POST":
        return await _submit(request, web, context, mode, browser.browser_id if browser else "")
    known = sign_ins.decode_person(request.query_params.get(AS, ""))
    made = known is not None and mode.developer.is_test_person(known.user_name)
    under_way = await interaction_context.load_for_return(context, request.query_params.get(SIGN_IN, ""), browser)
    here = _here(web, request.query_params.get(SIGN_IN, ""), request.query_params.get(AS, ""))
    back = under_way and Link(url=interaction_path(web, under_way.interaction_id), text=phrase("Back to the sign-in"))
    form = await stored_forms.read_form(request, context, browser, here)

    def view(browser_id: str) -> AnybodyPage:
        return AnybodyPage(
            frame=_frame(context, browser_id, here=with_parameter(here) if form else here, up=back or mode.up),
            action=here,
            clients=web.base_path + CLIENTS_PATH,
            typed=PersonFields.from_form(form.fields) if form else _typed(known),
            errors=form.errors if form else (),
            made=known.name if known is not None and made else "",
            link=_here(web, "", sign_ins.encode_person(known)) if known is not None and made else "",
        )

    return await page_for_browser(request, web, context, browser, view)


async def _submit(request: Request, web: WebContext, context: RequestContext, mode: Mode, browser_id: str) -> Response:
    form = parameters.parse(await form_bytes(request), _FIELDS)
    require_own_form(context, form, browser_id, _FORM)
    sign_in = request.query_params.get(SIGN_IN, "")
    errors: tuple[FieldError, ...]
    try:
        wanted = _wanted(PersonFields.from_form(form))
        await sign_ins.make(context, mode.developer, wanted)
    except _InvalidField as unfit:
        errors = (unfit.error,)
    except InvalidRequest as refused:
        errors = (
            (
                "json" if form.get("json", "").strip() else "roles",
                phrase("This cannot be used: {problem}", problem=refused.description.removeprefix("anybody: ")),
            ),
        )
    else:
        return see_other(_here(web, sign_in, sign_ins.encode_person(wanted)))
    here = _here(web, sign_in, request.query_params.get(AS, ""))
    return await stored_forms.to_entered(context, browser_id, here, StoredForm(fields=form, errors=errors))


class _InvalidField(Exception):
    """A field that cannot be read."""

    def __init__(self, field: str, sentence: Phrase) -> None:
        super().__init__(sentence)
        self.error: Final = (field, sentence)


def _wanted(typed: PersonFields) -> Anybody:
    """The person of a form: its JSON, else its fields."""
    written = typed.json.strip()
    if written:
        try:
            return msgspec.convert(json_object(written), Anybody)
        except MalformedToken:
            raise _InvalidField("json", phrase("This is not a JSON object.")) from None
        except msgspec.ValidationError as error:
            raise _InvalidField("json", phrase("This cannot be used: {problem}", problem=str(error))) from None
    entity, entity_name = typed.entity.strip(), typed.entity_name.strip()
    if not entity:
        raise _InvalidField("entity", phrase("Enter the identifier of the organisation."))
    new = {"type": "UEN", "registration_number": entity, "country": "SG", "name": entity_name, "status": "Registered"}
    name = typed.name.strip()
    return Anybody(
        entity=entity,
        person={"name": name} if name else {},
        entities={entity: new} if entity_name else {},
        roles=sign_ins.rows_of(typed.roles, *_OWN),
        third_party=sign_ins.rows_of(typed.third_party, *_OTHERS),
    )


def _typed(known: Anybody | None) -> PersonFields:
    """The fields of a person, or JSON if fields are not enough."""
    if known is None:
        return PersonFields()
    typed = PersonFields(
        name=str(known.person.get("name", "")),
        entity=known.entity,
        entity_name=str(known.entities.get(known.entity, {}).get("name", "")),
        roles=sign_ins.lines_of(known.roles, *_OWN) or "",
        third_party=sign_ins.lines_of(known.third_party, *_OTHERS) or "",
    )
    try:
        same = _wanted(typed).content == known.content
    except _InvalidField:
        same = False
    return typed if same else PersonFields(json=msgspec.json.format(known.content.decode(), indent=2))


def _here(web: WebContext, sign_in: str, person: str) -> str:
    query = {name: value for name, value in ((AS, person), (SIGN_IN, sign_in)) if value}
    return web.base_path + ANYBODY_PATH + (f"?{urlencode(query)}" if query else "")


def _frame(context: RequestContext, browser_id: str, *, here: str, up: Link) -> Frame:
    token = interactions.form_token(context, browser_id, _FORM)
    return Frame(form_token=token, under_way=True, here=here, up=up)
