"""One async function per operation: fetch, apply the law, write, return."""
