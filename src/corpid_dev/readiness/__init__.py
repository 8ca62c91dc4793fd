"""The readiness report: how a relying party behaves when something is wrong.

`cases` declares what is tried, `judging` decides what an observation means, both pure; `driver` does it with a scripted
browser and a demo's developer API; `renderings` write the report. It stands in the sandbox, since it drives what the
sandbox has (browser, callbacks) and needs nothing of a provider's own process. Source: D66
"""
