"""Calls to other systems: key sets of clients, mail, and password hashing threads."""
