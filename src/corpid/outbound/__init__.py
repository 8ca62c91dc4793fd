"""Calls to other systems (key sets, mail), and password hashing."""
