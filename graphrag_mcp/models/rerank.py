"""A reranker that runs in this process: a cross-encoder reads the question and a text together and scores the pair.

Takes the setting `local:<folder or name>`; gives one score per text, higher for what answers better; only their order
and distances mean anything. The library is the one of models/local.py, imported with the first question. Knows no
ranking that went before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from graphrag_mcp.models.local import attempted, loaded, place

BATCH = 16  # pairs that go through the model together
LONGEST = 4_000  # characters of a text that are read; models cut at 512 tokens or a little more


class LocalReranker:
    """`name` is the setting. One question at a time: the library uses every core for each."""

    def __init__(self, setting: str) -> None:
        self.name = setting
        self._model: Any = None
        self._worker = ThreadPoolExecutor(1, "local-reranker")

    def __repr__(self) -> str:
        return f"LocalReranker({self.name!r})"

    async def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._model = None

    async def rerank(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        if not texts:
            return ()
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._rerank, query, list(texts))

    def _rerank(self, query: str, texts: list[str]) -> tuple[float, ...]:
        if self._model is None:
            self._model = loaded(place(self.name), lambda library, where, options: library.CrossEncoder(
                where, device="cpu", **options))  # fmt: skip
        pairs = [(query, text[:LONGEST]) for text in texts]
        scores = attempted(self.name, lambda: self._scores(pairs))
        return tuple(round(float(score), 5) for score in scores)

    def _scores(self, pairs: list[tuple[str, str]]) -> Any:
        from torch.nn import Identity

        # The bare scores: squeezed between 0 and 1, the best ones would all be 0.9999.
        scores = self._model.predict(pairs, batch_size=BATCH, show_progress_bar=False, activation_fn=Identity())
        return scores[:, -1] if scores.ndim > 1 else scores  # of two labels the second is "relevant"
