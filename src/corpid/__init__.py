"""CorpID: an OpenID Provider for people who act for organisations."""

__version__ = "0.1.0"
