"""Shared by the tests of training."""

import pytest


@pytest.fixture(scope="module")
def small():
    from training_setup import small_days

    return small_days()
