"""What a person has to sign in with, and what setting a factor leaves as it is (D44, D45, D46)."""

from __future__ import annotations

import pytest

from corpid.rules.authentication.records import Credentials, Passkey, PersonFactors

NOTHING = Credentials(user_id="u")
PASSWORD = NOTHING.with_password("hash", "user")
APP = NOTHING.with_app("SECRET", "user", step=7)
BOTH = PASSWORD.with_app("SECRET", "user", step=7)
KEY = Passkey(
    credential_id="c", user_id="u", public_key="k", sign_count=0, name="n", aaguid="", synced=False, transports=(),
    created_at=0,
)  # fmt: skip


def held(credentials: Credentials, *passkeys: Passkey, codes: int = 0) -> PersonFactors:
    return PersonFactors(credentials=credentials, passkeys=passkeys, codes=codes)


@pytest.mark.parametrize(
    ("has", "begins", "second", "typed"),
    [
        (held(NOTHING), False, False, False),
        (held(PASSWORD), True, False, False),
        (held(APP), True, True, True),
        (held(NOTHING, KEY), True, True, False),
        (held(NOTHING, codes=1), False, True, True),
    ],
)
def test_what_there_is_tells_what_can_be_asked_for(has: PersonFactors, begins: bool, second: bool, typed: bool) -> None:
    """D45, D46."""
    assert (has.any, has.second_factor, has.typed_code) == (begins, second, typed)


def test_a_password_is_enough_for_good_only_with_what_does_not_run_out() -> None:
    """D45: an app, or codes by e-mail; neither recovery codes nor a passkey count."""
    assert held(BOTH).can_sign_in_without_passkeys(mailed=False)
    assert held(PASSWORD).can_sign_in_without_passkeys(mailed=True)
    assert not held(PASSWORD, KEY, codes=10).can_sign_in_without_passkeys(mailed=False)
    assert not held(APP).can_sign_in_without_passkeys(mailed=True)


def test_setting_one_factor_leaves_the_other_and_says_who_set_it() -> None:
    """D44: what a person or an operator has set, no directory file undoes."""
    filed = Credentials(user_id="u", password_hash="old", password_source="digest", totp_secret="OLD")
    new = filed.with_password("new", "operator")
    assert (new.password_hash, new.password_set_by, new.password_source) == ("new", "operator", "")
    assert (new.totp_secret, new.totp_set_by) == ("OLD", "directory")
    bare = filed.without_app("user")
    assert (bare.totp_secret, bare.totp_set_by, bare.password_hash) == (None, "user", "old")
