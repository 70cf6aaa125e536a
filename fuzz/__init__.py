"""Random cases against oracles that share no code with the package: ``python -m fuzz --seconds 3600``."""
