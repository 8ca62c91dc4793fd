"""Factors in the account: passkeys, password, authenticator app, recovery codes (D44, D45, D46)."""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.flows.account import own_factors, own_sessions
from corpid.flows.authentication.throttle import SentForm, rejection_counts
from corpid.rules.authentication import totp
from corpid.rules.authentication.passwords import SHORTEST_PASSWORD
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.limits import PASSKEYS_PER_PERSON
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.account.page_context import AccountContext, AccountPage
from corpid.web.pages.components import (
    Actions,
    AppKey,
    Cell,
    Field,
    Form,
    Items,
    Link,
    LinkList,
    Paragraph,
    Part,
    PasskeyForm,
    RecoveryCodes,
    Value,
    View,
)
from corpid.web.pages.responses import NO_STORE
from corpid.web.sites import NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.rules.authentication.records import Passkey, PersonFactors
    from corpid.rules.directory.records import User
    from corpid.web.context import WebContext


_NONE: Final = phrase("None")
_IN_USE: Final = phrase("In use")
_NEEDS_A_PASSWORD: Final = phrase("Works once you have a password")
_NEEDS_A_SECOND_FACTOR: Final = phrase("Works once you have a second step")
_YOUR_PASSKEYS: Final = phrase("Your passkeys")
SET_UP_APP: Final = phrase("Set up your second step")
SAVE_CODES: Final = phrase("Save your recovery codes")
OTHER_CODES: Final = "other-codes"
"""the `decision` of a person who has not saved the codes"""
_RULES: Final = phrase(
    "At least {shortest} characters. Several words make a good one; you do not need special characters.",
    shortest=SHORTEST_PASSWORD,
)
_REFERENCE_CHARACTERS: Final = 16
_NAME_CHARACTERS: Final = 60
"""of a passkey or browser"""
_GROUP: Final = 4
_QUIET_ZONE: Final = 4
"""modules around a QR code (ISO/IEC 18004)"""


def count_once(submit: Callable[[AccountContext], Awaitable[str]]) -> Callable[[AccountContext], Awaitable[str]]:
    """The submission, with rejections of the same bytes counted once (D73)."""

    async def submitted(account: AccountContext) -> str:
        visit = account.visit
        digest = bytes.fromhex(own_sessions.digest_of(account.form))
        sent = SentForm(place=own_sessions.form_place(visit, account.page, "sent"), digest=digest)
        try:
            return await submit(replace(account, visit=replace(visit, sent=sent)))
        except InvalidInput:
            await rejection_counts(account.context, sent)
            raise

    return submitted


def list_factor_links(account: AccountContext, factors: PersonFactors) -> tuple[tuple[Link, Value], ...]:
    """The links to each factor, with its state."""
    number, used_at = len(factors.passkeys), own_factors.app_used_at(factors)
    app = _state_beside_password(factors, _IN_USE if factors.app else None)
    return (
        (
            account.link("passkeys", phrase("Passkeys")),
            counted(number, "{count} passkey", "{count} passkeys") if number else _NONE,
        ),
        (account.link("password", phrase("Password")), _password_state(account, factors)),
        (
            account.link("app", phrase("Authenticator app")),
            phrase("{first} · {rest}", first=app, rest=_last_used(account, used_at)) if used_at else app,
        ),
        (
            account.link("codes", phrase("Recovery codes")),
            _state_beside_password(factors, _codes_state(factors)),
        ),
    )


def _last_used(account: AccountContext, used_at: float) -> Phrase:
    return phrase("Last used {moment}", moment=account.moment(used_at)) if used_at else phrase("Never used")


def name_field(value: str, hint: Phrase) -> Field:
    """The field of a name that the person gives."""
    return Field(name="name", label=phrase("Name"), hint=hint, value=value, most=_NAME_CHARACTERS)


def _password_state(account: AccountContext, factors: PersonFactors) -> Phrase:
    if not factors.password:
        return _NONE
    goes = own_factors.go_with_password(account.context, account.visit, factors)
    return _IN_USE if goes else _NEEDS_A_SECOND_FACTOR


def _codes_state(factors: PersonFactors) -> Phrase | None:
    left = factors.codes
    return counted(left, "{count} code left", "{count} codes left") if left else None


def _state_beside_password(factors: PersonFactors, state: Phrase | None) -> Phrase:
    if state is None:
        return _NONE
    return state if factors.password else _NEEDS_A_PASSWORD


def reference(passkey: Passkey) -> str:
    """The identifier of a passkey in its page's address."""
    return sha256(passkey.credential_id.encode()).hexdigest()[:_REFERENCE_CHARACTERS]


async def _factors(account: AccountContext) -> PersonFactors:
    return await own_factors.load_factors(account.context, account.visit)


async def show_passkeys(account: AccountContext) -> View:
    """The passkeys of a person (D46)."""
    factors = await _factors(account)
    works, full = own_factors.are_passkeys_offered(account.context), own_factors.full(factors)
    links = tuple(
        (account.link(f"passkey/{reference(each)}", each.name), _last_used(account, each.used_at))
        for each in factors.passkeys
    )
    add = (account.link("new-passkey", phrase("Add a passkey")),) if works and not full else ()
    return account.build_page(
        _YOUR_PASSKEYS,
        phrase(
            "With a passkey you sign in with your fingerprint, your face or your device's PIN. You do not need a password "
            "or a code."
        ),
        LinkList(links=links) if links else phrase("You do not have a passkey yet."),
        phrase("You have {passkeys} passkeys, which is the maximum.", passkeys=PASSKEYS_PER_PERSON) if full else None,
        Actions(add, main=True),
    )


async def show_new_passkey(account: AccountContext) -> View:
    """The page that creates a passkey (D46).

    Raises NotFound if unsupported here, StaleStep at the limit.
    """
    if not own_factors.are_passkeys_offered(account.context):
        raise NotFound
    if own_factors.full(await _factors(account)):
        raise StaleStep
    return account.build_page(
        phrase("Add a passkey"),
        phrase("Your device asks for your fingerprint, your face or its PIN, then saves the passkey."),
        PasskeyForm(
            action=account.path("new-passkey"),
            options=await own_factors.options(account.context, account.visit),
            kind="create",
            label=phrase("Create a passkey"),
            cancelled=phrase("No passkey was created. Try again, or go back to your account."),
            known=phrase("This device already has a passkey for your account."),
            failed=phrase("This browser could not create a passkey here. Try another browser or device."),
        ),
        up=account.link("passkeys", _YOUR_PASSKEYS),
    )


async def _add_passkey(account: AccountContext) -> str:
    await own_factors.add(account.context, account.visit, account.cookie, answer=account.form.get("passkey", ""))
    return "passkey-added"


async def this_passkey(account: AccountContext) -> Passkey:
    """The passkey of the page.

    Raises NotFound if it is missing or another person's (D46).
    """
    named = account.page.partition("/")[2]
    found = next((each for each in (await _factors(account)).passkeys if reference(each) == named), None)
    if found is None:
        raise NotFound
    return found


async def show_passkey(account: AccountContext) -> View:
    """One passkey, which can be renamed and removed (D46)."""
    shown, up = await this_passkey(account), account.link("passkeys", _YOUR_PASSKEYS)
    removal = phrase("If you remove this passkey, it no longer works and you are signed out everywhere else.")
    typed = account.form.get("name", shown.name)
    return account.build_page(
        phrase("{name}", name=shown.name),
        Items(
            (
                phrase("Created on {day}", day=account.moment(shown.created_at).date()),
                _last_used(account, shown.used_at),
                phrase("May be available on your other devices") if shown.synced else phrase("On one device only"),
            )
        ),
        Form(
            parts=(name_field(typed, phrase("A name that helps you recognise it.")),),
            button=phrase("Save name"),
            decision="rename",
        ),
        Form(
            parts=(Paragraph(removal, look="hint"),),
            button=phrase("Remove this passkey"),
            danger=True,
            decision="remove",
            back=Link(url=up.url, text=phrase("Cancel")),
        ),
        name=shown.name,
        up=up,
        back=None,
    )


async def _change_passkey(account: AccountContext) -> str:
    visit = account.visit
    shown = await this_passkey(account)
    if account.form.get("decision") == "remove":
        await own_factors.remove(account.context, visit, shown)
        return "passkey-removed"
    await own_factors.rename(account.context, visit, shown, name=account.form.get("name", ""))
    return "passkey-renamed"


async def show_password(account: AccountContext) -> View:
    """Choosing a new password (D44)."""
    factors = await _factors(account)
    alone = phrase(
        "A password works only with a second step, such as a code, and you do not have one yet. Set up an app as well."
    )
    goes = own_factors.go_with_password(account.context, account.visit, factors)
    return account.build_page(
        phrase("Choose a new password") if factors.password else phrase("Choose a password"),
        choose_password(account.visit.user.user_name),
        notes=account.notes if goes else (*account.notes, alone),
    )


def choose_password(user_name: str, *, secondary: bool = False) -> Form:
    """The form of a new password.

    Fields: user_name (for password managers), password. `secondary` if a passkey comes first.
    """
    return Form(
        parts=(
            Field(name="user_name", label=phrase("User name"), kind="own user name", value=user_name),
            Field(name="password", label=phrase("New password"), hint=_RULES, kind="new password"),
        ),
        button=phrase("Use this password"),
        secondary=secondary,
    )


async def _change_password(account: AccountContext) -> str:
    password = account.form.get("password", "")
    await own_factors.change_password(account.context, account.visit, password=password)
    return "password"


def _notes_on(account: AccountContext, factors: PersonFactors, alone: Phrase) -> tuple[Phrase, ...]:
    return (*account.notes, *(() if factors.password else (alone,)))


async def show_app(account: AccountContext) -> View:
    """Setting up an app, which may replace another one (D45)."""
    factors = await _factors(account)
    shown = await own_factors.offer(account.context, account.visit, "app")
    alone = phrase("An app works only with a password, and you do not have one yet. Choose one as well.")
    replaces = phrase("Your current app stops working once the new one is set up.")
    secret = own_factors.app_secret(account.context, shown)
    return account.build_page(
        SET_UP_APP,
        *set_up_app(account.web, account.visit.user, secret, account.path("app/qr.svg")),
        account.link("remove-app", phrase("Remove your current app")) if factors.app else None,
        notes=(*_notes_on(account, factors, alone), *((replaces,) if factors.app else ())),
    )


def set_up_app(web: WebContext, user: User, secret: str, picture: str, *, secondary: bool = False) -> tuple[Part, ...]:
    """The key of an app, and the form of its first code.

    `secondary` if a passkey comes first.
    """
    hint = phrase("6 digits, which change every 30 seconds.")
    return (
        AppKey(picture=picture, link=otpauth_link(web, user, secret), secret=group_key(secret)),
        Form(
            parts=(Field(name="code", label=phrase("Code"), hint=hint, kind="code"),),
            button=phrase("Continue"),
            secondary=secondary,
        ),
    )


async def _set_up_app(account: AccountContext) -> str:
    await own_factors.set_up_app(account.context, account.visit, code=account.form.get("code", ""))
    return "app"


async def show_qr_code(account: AccountContext) -> Response:
    """The QR code, with the same link (D45)."""
    shown = await own_factors.offer(account.context, account.visit, "app")
    return draw_qr_code(otpauth_link(account.web, account.visit.user, own_factors.app_secret(account.context, shown)))


async def show_app_removal(account: AccountContext) -> View:
    """The confirmation before the app is removed (D45).

    Raises StaleStep if there is none.
    """
    factors = await _factors(account)
    if not factors.app:
        raise StaleStep
    used_at = own_factors.app_used_at(factors)
    return account.build_page(
        phrase("Remove the authenticator app?"),
        phrase("Its codes will no longer work, and you will be signed out everywhere else."),
        _last_used(account, used_at) if used_at else None,
        Form(button=phrase("Remove the app"), danger=True),
    )


async def _remove_app(account: AccountContext) -> str:
    await own_factors.remove_app(account.context, account.visit)
    return "app-removed"


async def show_codes(account: AccountContext) -> View:
    """New recovery codes, until the person confirms them.

    They are the same for a day, and can be read for a minute. Source: D45, D73
    """
    factors = await _factors(account)
    shown = await own_factors.offer(account.context, account.visit, "codes")
    alone = phrase("Recovery codes work only with a password, and you do not have one yet. Choose one as well.")
    readable = own_factors.are_readable(account.context, account.visit, shown)
    return account.build_page(
        SAVE_CODES,
        *keep_codes(own_factors.codes(account.context, shown) if readable else (), replaces=factors.codes > 0),
        account.link("remove-codes", phrase("Remove your current codes")) if factors.codes else None,
        notes=_notes_on(account, factors, alone),
        step_name=shown,
    )


def keep_codes(codes: tuple[str, ...], *, replaces: bool) -> tuple[Part, ...]:
    """Recovery codes, and the form that confirms them.

    They are readable for a minute (D73). No `codes`: they are no longer shown. `replaces` says whether the person has others, which end. Fields: kept,
    decision=OTHER_CODES.
    """
    saved = Field(name="kept", label=phrase("I have saved these codes."), kind="flag")
    form = Form(
        parts=(saved,),
        button=phrase("Finish"),
        danger=replaces,
        other=None if codes else (OTHER_CODES, phrase("Show new codes")),
    )
    old_end = phrase("Your old recovery codes stop working when you select Finish.") if replaces else None
    if codes:
        once = phrase(
            "If you lose your app, each code lets you sign in once. They are shown only now: print this page, or copy them "
            "to a safe place."
        )
        lost = phrase("If you lose the codes, create new ones in your account.")
        return Cell(values=(once, lost)), RecoveryCodes(codes=codes), old_end, form
    return (
        phrase("Your codes are no longer shown, so that nobody else can read them here."),
        phrase(
            "If you have saved them, tick the box and select Finish. If you have not, show new ones and save those."
        ),
        old_end,
        form,
    )


async def _replace_codes(account: AccountContext) -> str:
    shown, kept = account.form.get("step", ""), account.form.get("kept") == "yes"
    if account.form.get("decision") == OTHER_CODES:
        await own_factors.offer_other_codes(account.context, account.visit, shown=shown)
        return ""
    await own_factors.replace_codes(account.context, account.visit, shown=shown, kept=kept)
    return "codes"


async def show_codes_removal(account: AccountContext) -> View:
    """The confirmation before the recovery codes are removed (D45).

    Raises StaleStep if there are none.
    """
    left = (await _factors(account)).codes
    if not left:
        raise StaleStep
    return account.build_page(
        phrase("Remove your recovery codes?"),
        counted(
            left,
            "The {count} code that is left will no longer work, and you will be signed out everywhere else.",
            "The {count} codes that are left will no longer work, and you will be signed out everywhere else.",
        ),
        Form(button=phrase("Remove the codes"), danger=True),
    )


def otpauth_link(web: WebContext, user: User, secret: str) -> str:
    """The otpauth address that opens an app.

    The QR code contains the same. Source: D45
    """
    return totp.otpauth_uri(secret, account=user.user_name, issuer=web.provider.policy.name)


def group_key(secret: str) -> str:
    """A key (base32) in groups, for typing."""
    return " ".join(secret[start : start + _GROUP] for start in range(0, len(secret), _GROUP))


def draw_qr_code(text: str) -> Response:
    """A QR code, drawn here (ISO/IEC 18004)."""
    import segno  # noqa: PLC0415 - few pages draw a code

    drawn = BytesIO()
    code = segno.make_qr(text)
    code.save(drawn, kind="svg", border=_QUIET_ZONE, dark="#000", light="#fff", xmldecl=False, omitsize=True)
    return Response(drawn.getvalue(), 200, NO_STORE, "image/svg+xml")


async def _remove_codes(account: AccountContext) -> str:
    await own_factors.remove_codes(account.context, account.visit)
    return "codes-removed"


SECTION: Final = Section[AccountContext](
    pages={
        "passkeys": AccountPage(view=show_passkeys),
        "new-passkey": AccountPage(
            view=show_new_passkey, submit=count_once(_add_passkey), leads_to="passkeys", field="passkey", fresh=True
        ),
        "app": AccountPage(view=show_app, submit=count_once(_set_up_app), field="code", fresh=True),
        "app/qr.svg": AccountPage(view=show_qr_code, fresh=True, part_of="app"),
        "remove-app": AccountPage(view=show_app_removal, submit=_remove_app, fresh=True),
        "password": AccountPage(view=show_password, submit=count_once(_change_password), field="password", fresh=True),
        "codes": AccountPage(view=show_codes, submit=count_once(_replace_codes), field="kept", fresh=True),
        "remove-codes": AccountPage(view=show_codes_removal, submit=_remove_codes, fresh=True),
    },
    named_pages={
        re.compile(r"passkey/[0-9a-f]{16}"): AccountPage(
            view=show_passkey, submit=_change_passkey, leads_to="passkeys", field="name", fresh=True
        )
    },
    fields=frozenset({"name", "password", "code", "passkey", "kept", "decision"}),
    changes={
        "passkey-added": phrase("Your passkey has been added."),
        "passkey-renamed": phrase("Your passkey has a new name."),
        "passkey-removed": phrase("Your passkey has been removed."),
        "app": phrase("Your authenticator app has been set up."),
        "app-removed": phrase("Your authenticator app has been removed."),
        "password": phrase("Your password has been changed."),
        "codes": phrase("Your new recovery codes now work."),
        "codes-removed": phrase("Your recovery codes have been removed."),
    },
)
