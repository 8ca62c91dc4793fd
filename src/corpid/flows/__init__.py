"""Flows: one async function per operation."""
