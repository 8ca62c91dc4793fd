"""Addresses of developer mode, below the base URL (D66)."""

from __future__ import annotations

from typing import Final

DEVELOPER_PATH: Final = "/developer"
CATALOGUE_PATH: Final = f"{DEVELOPER_PATH}/errors"
"""the page of every reason; the anchor is the reason's code"""
SCHEMAS_PATH: Final = f"{DEVELOPER_PATH}/schemas/"
ANYBODY_PATH: Final = f"{DEVELOPER_PATH}/anybody"
CLIENTS_PATH: Final = f"{DEVELOPER_PATH}/clients"
SIGN_INS_PATH: Final = f"{DEVELOPER_PATH}/sign-ins"
EXCHANGES_PATH: Final = f"{DEVELOPER_PATH}/exchanges"
EVENTS_PATH: Final = f"{DEVELOPER_PATH}/events"
TRAFFIC_PATH: Final = f"{DEVELOPER_PATH}/traffic"
ORDERS_PATH: Final = f"{DEVELOPER_PATH}/orders"
READINESS_PATH: Final = f"{DEVELOPER_PATH}/readiness"
