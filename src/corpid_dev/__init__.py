"""The developer kit: demo, sandbox, inspector, readiness report, tests of relying parties (D66)."""
