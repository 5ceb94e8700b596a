"""Faults put into the source on purpose turn the tests red (see `mutations`)."""

from __future__ import annotations

import pytest

import mutations


@pytest.mark.slow
def test_without_a_mutation_all_is_green():
    assert mutations.run_unchanged() is None


@pytest.mark.slow
@pytest.mark.parametrize("mutation", mutations.MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutations_are_noticed(mutation):
    assert mutations.run(mutation) is not None
