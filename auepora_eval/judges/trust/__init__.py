"""How far a judge is to be trusted: compared with people, probed, asked again, and its values corrected."""
