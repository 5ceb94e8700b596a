"""L1 sensitivities, one function a statistic, each with its derivation; exact integers throughout.

Neighbours: two tables that differ by all rows of one privacy unit (`privacy.RELATION`). A *measurement* is
the vector of exact integer totals over all groups; its sensitivity is the largest L1 distance between the
vectors of neighbours. The Laplace mechanism with scale sensitivity / epsilon is epsilon-differentially
private (Dwork, McSherry, Nissim, Smith 2006, "Calibrating noise to sensitivity in private data analysis";
Dwork and Roth 2014, theorem 3.6). With discrete Laplace noise on integer totals: for neighbours with totals f
and f', P(output = y | f) / P(output = y | f') is the product over groups of q^(|y_g - f_g| - |y_g - f'_g|),
q = exp(-epsilon / sensitivity), which is at most q^-|f - f'|_1 <= e^epsilon by the triangle inequality (Ghosh,
Roughgarden, Sundararajan 2012, "Universally utility-maximizing privacy mechanisms").

**Weights.** Let unit u have N rows left after the filter and the matching of keys, S = `grid.WEIGHT`, and C
the limit. Each of its rows gets the integer weight

    w = S               if N <= C,
    w = floor(S C / N)  if N > C.

(1)  N w <= S C:  in the first case N S <= C S, in the second N floor(S C / N) <= N (S C / N) = S C.

The weight of u's rows depends on u's rows alone. So removing u from the table takes exactly u's own terms
out of each total and changes nothing else.
"""

from __future__ import annotations

from discreet.grid import WEIGHT, Grid

__all__ = [
    "of_bins",
    "of_centred_square",
    "of_centred_sum",
    "of_count",
    "of_distinct_count",
    "of_group_total",
    "of_sum",
    "of_unit_count",
    "row_weight",
]


def row_weight(*, row_level: bool) -> int:
    """S for the rows of a unit within its limit.

    At row level each unit is one row, N = C = 1 always, so the weight is never cut and 1 will do.
    """
    return 1 if row_level else WEIGHT


def of_count(limit: int, weight: int) -> int:
    """Of COUNT(*), COUNT(x) and COUNTIF(c): the total of a group is the sum of the weights of its counted rows.

    Unit u's rows fall into groups, each row into one at most; over all groups its terms add up to at most
    N w <= S C by (1). Reached by N = C rows.
    """
    return weight * limit


def of_sum(limit: int, weight: int, grid: Grid) -> int:
    """Of SUM(x): the total is the sum of w q with integers |q| <= B = `grid.largest`.

    Over all groups u's terms have size at most sum over its rows of w |q| <= N w B <= S C B by (1). Reached
    by N = C rows at the bound of size B.
    """
    return weight * limit * grid.largest


def of_centred_sum(limit: int, weight: int, grid: Grid) -> int:
    """Of the sum around the centre of the bounds: the total is the sum of w (2 q - qL - qU).

    With qL <= q <= qU:  -(qU - qL) <= 2 q - qL - qU <= qU - qL, so a row's value has size at most
    `grid.width`, and u's terms at most N w (qU - qL) <= S C (qU - qL) by (1). Reached at either bound.
    """
    return weight * limit * grid.width


def of_centred_square(limit: int, weight: int, grid: Grid) -> int:
    """Of the squares around the centre: the total is the sum of w (2 r - R), r the square of a row's value.

    With 0 <= r <= R = `grid.largest_square`, as `Grid.square` never decreases and no distance is above the
    width:  -R <= 2 r - R <= R, and u's terms have size at most N w R <= S C R by (1). Reached at either bound.
    """
    return weight * limit * grid.largest_square


def of_bins(limit: int, weight: int) -> int:
    """Of one level of a tree of bins: the total of a node is the sum of the weights of the rows in it.

    Over all groups and nodes of the level: each of u's rows lies in one group and, its value being present, in one
    node, so u's terms add up to at most N w <= S C by (1). Reached by N = C rows. (The levels are measurements of
    their own, each with its share of epsilon.)
    """
    return weight * limit


def of_unit_count(limit: int, weight: int) -> int:
    """Of COUNT(DISTINCT privacy unit): the total of a group is the sum of the weights of the units in it.

    Here u has M distinct (unit, group) pairs in place of N rows and the limit is `max_groups_contributed`;
    (1) holds with M for N: M w <= S G. Without groups M <= 1. Where G is at least the number of groups the
    weight is never cut and 1 will do for S.
    """
    return weight * limit


def of_group_total(limit: int, weight: int, ends: tuple[int, int]) -> int:
    """Of SUM(x) and COUNT with bounds per group: the total of a group is the sum of w s over the units in it, where s
    is u's own total there (the sum of q, or the number of rows, of its rows in the group), clamped to the ends.

    |s| <= B, the larger size of the two ends, however many rows u has and whatever is in them. As for the count of
    units, u has M distinct (unit, group) pairs, each with the weight w, and M w <= S G by (1) with M for N; so u's
    terms add up to at most M w B <= S G B. A pair without a value (all of u's x are missing there) adds 0. s depends
    on u's own rows alone, so removing u takes out u's terms and changes nothing else. Reached by M = G groups at the
    end of size B. Where G is at least the number of groups the weight is never cut and 1 will do for S.

    (Clamping what a user has in a group is BigQuery's contribution_bounds_per_group; Wilson et al. 2020,
    "Differentially private SQL with bounded user contribution", section 4.2, which picks G groups where this weighs.)
    """
    return weight * limit * max(abs(end) for end in ends)


def of_distinct_count(limit: int) -> int:
    """Of COUNT(DISTINCT x): the total of a group is the number of different x among what the units count in it.

    Unit u counts a set K_u of (group, x) pairs, at most C of them, chosen from u's rows alone. The total of group g is
    the size of the union over all units of {x : (g, x) in K_u}. Without u this union loses the x that u alone counts
    in g, at most |{x : (g, x) in K_u}|; over all groups at most |K_u| <= C. What others count stays: it shrinks the
    change, never adds to it. Reached by C values that nobody else has. (At row level a row is one pair, C = 1.)
    """
    return limit
