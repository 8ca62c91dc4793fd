"""Failures of stores, and of calls to the outside."""

from __future__ import annotations

from corpid.rules.oauth.errors import Attributed


class StoreUnavailable(Attributed):
    """The store cannot be reached or stayed busy; becomes temporarily_unavailable."""


class OrderlyStopRefused(Exception):
    """Nothing can be proven; the message is a sentence for the operator."""


class SecretUnreadable(Exception):
    """A secret at rest cannot be decrypted.

    The key-encryption key is another one, or the row was changed. Source: D43
    """


class KeySetUnavailable(Exception):
    """No usable key set of this client, fetched or stored.

    It is unreachable or malformed, and there is no last good one. Source: D27
    """


class MailDelayed(Exception):
    """An e-mail that cannot be sent now, but perhaps later."""


class SenderRefused(MailDelayed):
    """An e-mail that waits for an operator.

    The server permanently refuses CorpID itself: its password or its sender address.
    """


class EmailDelayed(MailDelayed):
    """An e-mail that the server does not take now, unlike others perhaps.

    It does not say whether the fault is the recipient's or CorpID's.
    """


class MailRefused(Exception):
    """An e-mail that the server takes neither now nor later."""


class PasswordsBusy(Attributed):
    """Too many password checks are waiting; becomes temporarily_unavailable."""


class StreamFailed(Exception):
    """Entries could not be handed over; the message says why."""


class StreamInterrupted(Exception):
    """The receiver ended the connection while nothing was sent.

    It may not have read the last entries.
    """

    def __init__(self, *, is_reset: bool = False) -> None:
        super().__init__("the connection ended")
        self.is_reset = is_reset
        """the receiver had certainly not read everything"""
