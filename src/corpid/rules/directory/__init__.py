"""Rules of the directory: who may act for whom."""
