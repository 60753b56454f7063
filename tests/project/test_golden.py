"""The golden set, as `make test` checks it."""

from __future__ import annotations

from tests.golden.__main__ import compared


def test_digests_reply_keys_results_and_the_old_index_are_as_recorded() -> None:
    assert "\n".join(compared()[:200]) == ""
