"""The law of who may act for whom: pure and synchronous."""
