"""`discreet noise`: draws from the discrete Laplace law, to look at."""

from __future__ import annotations

from discreet.cli.output import write_stdout

__all__ = ["MOST_DRAWS", "show_noise"]

MOST_DRAWS = 1_000_000


def show_noise(scale: str, size: str) -> None:
    """Print draws, one a line.

    Raises:
        UsageError: a scale outside what the sampler takes, or a size outside 1 to `MOST_DRAWS`.
    """
    from discreet.exact import parse_positive_integer, parse_rational
    from discreet.laplace import sample_discrete_laplace

    count = parse_positive_integer("--size", size, most=MOST_DRAWS)
    draws = sample_discrete_laplace(parse_rational("--scale", scale), size=count)
    write_stdout("".join(f"{draw}\n" for draw in draws), machine=True)
