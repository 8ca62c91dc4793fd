"""The console: pages for operators of the deployment.

A section is a module. Forms that change a stored record share `record_forms`: a form that was filled in for an older
version is refused.
"""
