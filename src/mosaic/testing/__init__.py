"""Tests for other packages to inherit: a worker that passes `WorkerContract` works with all the rest."""

import pytest

# Before the module is imported: so a failing assert of an inherited test shows its values too.
pytest.register_assert_rewrite("mosaic.testing.worker_contract")
