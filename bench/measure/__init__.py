"""What the benchmarks share: generated tables, timing in pairs, tables of results."""
