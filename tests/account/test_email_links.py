"""The pages of the account to which e-mails lead (docs/decisions/0022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from corpid.flows.notifications import AccountPage
from tests.account.scene import account, at_account

if TYPE_CHECKING:
    from tests.sign_in.world import World


@pytest.mark.parametrize("page", sorted({*get_args(AccountPage)} - {"overview"}))
async def test_an_email_leads_through_the_sign_in_to_a_page_that_is_there(made: World, page: str) -> None:
    browser = await at_account(made, page)
    assert browser.url == account(made, page)
    assert browser.response is not None
    assert browser.response.status_code == 200
