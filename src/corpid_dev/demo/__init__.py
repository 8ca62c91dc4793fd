"""Developer mode: a relying party, a scripted browser and the demo."""
