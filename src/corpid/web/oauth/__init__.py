"""Machine endpoints and the arrival at authorize."""
