"""The console: pages for operators of the deployment.

A section is a module; `endpoints` lists them. `page_context` has the operator, the frame of a page, and the version of
the record that a form changes: a form that was filled in for an older one is refused.
"""
