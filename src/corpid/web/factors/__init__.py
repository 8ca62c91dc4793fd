"""What pages about a person's factors have in common, wherever these are shown, set up or changed."""
