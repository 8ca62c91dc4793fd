"""A deployment that sends no mail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from corpid.ports import Letter


class NoMail:
    """A ports.Mail of a deployment without a mail server."""

    works = False

    def post(self, letter: Letter) -> None:  # noqa: ARG002 - the port's signature
        """Says in the log that a letter was not sent, but nothing of it (D48)."""
        structlog.get_logger().info("mail_not_sent", detail="no mail server is set: mail_url")
