"""The engines: each runs a compiled statement over one registered source and gives exact integer totals."""
