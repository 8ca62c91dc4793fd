"""Addresses of developer mode, below the base URL (D66)."""

from __future__ import annotations

from typing import Final

from corpid.rules.oauth.refusals import CATALOGUE_PATH

DEVELOPER_PATH: Final = CATALOGUE_PATH.rpartition("/")[0]
"""where exact reasons are explained, the rest of developer mode is, too"""
SCHEMAS_PATH: Final = f"{DEVELOPER_PATH}/schemas/"
ANYBODY_PATH: Final = f"{DEVELOPER_PATH}/anybody"
CLIENTS_PATH: Final = f"{DEVELOPER_PATH}/clients"
SIGN_INS_PATH: Final = f"{DEVELOPER_PATH}/sign-ins"
EXCHANGES_PATH: Final = f"{DEVELOPER_PATH}/exchanges"
EVENTS_PATH: Final = f"{DEVELOPER_PATH}/events"
TRAFFIC_PATH: Final = f"{DEVELOPER_PATH}/traffic"
ORDERS_PATH: Final = f"{DEVELOPER_PATH}/orders"
READINESS_PATH: Final = f"{DEVELOPER_PATH}/readiness"
