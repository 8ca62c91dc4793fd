"""POSTs of the sign-in: submission and error field of each (D15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.flows.authentication import passkeys, second_factors, sign_in
from corpid.flows.authentication.sign_in import Rejected
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from corpid.flows.authentication.visits import Visit
    from corpid.flows.request_context import RequestContext

FIELDS: Final = frozenset(
    {"form_token", "step", "user_name", "password", "code", "passkey", "entity", "query", "decision"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A POST of the sign-in: its submission and its error field."""

    submit: Callable[[RequestContext, Visit, Mapping[str, str]], Awaitable[Visit]]
    """returns the visit as it is now"""
    field: str = ""
    proves: bool = False
    """true if it may be the last factor, after which the browser has another cookie value"""


async def _password(context: RequestContext, visit: Visit, form: Mapping[str, str]) -> Visit:
    user_name, password = form.get("user_name", "").strip(), form.get("password", "")
    return await sign_in.submit_password(context, visit, user_name=user_name, password=password)


async def _passkey(context: RequestContext, visit: Visit, form: Mapping[str, str]) -> Visit:
    return await passkeys.submit_passkey(context, visit, answer=form.get("passkey", ""))


async def _way(context: RequestContext, visit: Visit, form: Mapping[str, str]) -> Visit:
    return await second_factors.choose_way(context, visit, way=form.get("decision", ""))


async def _code(context: RequestContext, visit: Visit, form: Mapping[str, str]) -> Visit:
    return await second_factors.submit_code(context, visit, code=form.get("code", ""))


async def _entity(context: RequestContext, visit: Visit, form: Mapping[str, str]) -> Visit:
    if form.get("decision") == "other_account":
        return await sign_in.start_over(context, visit)
    return await sign_in.submit_entity(context, visit, entity_id=form.get("entity", ""))


async def _consent(context: RequestContext, visit: Visit, form: Mapping[str, str]) -> Visit:
    if form.get("decision") == "other_account":
        return await sign_in.start_over(context, visit)
    if form.get("decision") != "agree":
        raise Rejected(phrase("Choose whether you agree."))
    return await sign_in.submit_consent(context, visit)


async def _confirm(context: RequestContext, visit: Visit, form: Mapping[str, str]) -> Visit:
    if form.get("decision") == "other_account":
        return await sign_in.start_over(context, visit)
    if form.get("decision") != "continue":
        raise Rejected(phrase("Choose whether you continue."))
    return await sign_in.confirm(context, visit)


async def _extend(context: RequestContext, visit: Visit, _: Mapping[str, str]) -> Visit:
    return await sign_in.extend(context, visit)


async def _cancel(context: RequestContext, visit: Visit, _: Mapping[str, str]) -> Visit:
    return await sign_in.cancel(context, visit)


STEPS: Final[Mapping[str, Step]] = {
    "password": Step(submit=_password, field="password"),
    "passkey": Step(submit=_passkey, field="passkey", proves=True),
    "way": Step(submit=_way),
    "code": Step(submit=_code, field="code", proves=True),
    "entity": Step(submit=_entity, field="entity"),
    "consent": Step(submit=_consent),
    "confirm": Step(submit=_confirm),
    "extend": Step(submit=_extend),
    "cancel": Step(submit=_cancel),
}
"""by the last part of the form's action address"""
