"""The readiness report: how a relying party behaves when something is wrong.

`cases` declares what is tried, `case` decides what an observation means, both pure; `driver` does it with a scripted
browser and a demo's developer API; `report` has and writes what was found. It needs nothing of a provider's own
process. Source: D66
"""
