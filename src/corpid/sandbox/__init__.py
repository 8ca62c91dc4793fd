"""Developer mode: a relying party in code, a scripted browser and the demo."""
