"""How far explanations move: measured, compared, proven, and at worst."""
