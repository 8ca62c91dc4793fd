"""A further issuer in the settings: one table of `[[issuers]]` (D62)."""

from __future__ import annotations

from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from corpid.settings import checks


class Issuer(BaseModel):
    """One table of `[[issuers]]`.

    A setting that it leaves out has its preset's value, otherwise that of the top level.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    id: Annotated[str, AfterValidator(checks.issuer_id)]
    base_url: Annotated[str, AfterValidator(checks.base_url)]
    preset: Literal["", "public-service"] = ""
    generations: Annotated[
        tuple[str, ...], BeforeValidator(checks.listed), AfterValidator(checks.generations), Field(min_length=1)
    ] = ()
    return_iss: bool | None = None
    acr_prefix: str = Field(default="", min_length=1, max_length=200, pattern=r"^[!-~]+$")
    dpop_mismatch_error: Literal["invalid_grant", "invalid_dpop_proof"] = "invalid_grant"
    context_message_punctuation: bool = True
    jwe_header_claims: bool = False
    timezone: Annotated[ZoneInfo, BeforeValidator(checks.zone)] = ZoneInfo("UTC")
