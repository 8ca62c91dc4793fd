"""The console: pages for operators of the deployment."""
