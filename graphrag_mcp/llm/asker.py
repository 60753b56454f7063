"""Calls of models: looked up in the reply cache first, then asked, then answered without a model.

An `Ask` is a rendered prompt, how to read a reply, and what to give when no model answers. Only
replies that could be read are written into the cache, before they are used; what `without` gives
never is. Coroutines run on one event loop in a thread of its own, so the functions of the engine
stay ordinary functions."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from graphrag_mcp.errors import ModelError
from graphrag_mcp.llm import protocols
from graphrag_mcp.llm.budget import EMBEDDING, Budget, Reserved, Spent
from graphrag_mcp.llm.replies import BadReply, storable
from graphrag_mcp.llm.turns import QUESTIONS, VECTORS, Turns
from graphrag_mcp.text.tokens import count_tokens, packed

if TYPE_CHECKING:
    from graphrag_mcp.store.reply_cache import AnswerBook, Stored

T = TypeVar("T")


def batches(texts: Mapping[str, str], most: int, characters: int) -> list[dict[str, str]]:
    """Texts by key in calls of at most so many texts and characters; one that is longer goes alone."""
    return list(map(dict, packed(texts.items(), lambda pair: len(pair[1]), characters, most)))


class Streak:
    """Calls in a row that gave up: no one may be there any more, and each of thousands would wait
    through all its tries. After MANY of them, and twice as many as are under way at once
    (`concurrency`), nothing more is asked; with 0, as in a server that lives on, never."""

    MANY = 50

    def __init__(self, concurrency: int) -> None:
        self._most = max(self.MANY, 2 * concurrency) if concurrency else 0
        self._count = 0

    def failed(self, error: ModelError) -> bool:
        """Is it time to ask nothing more? A server that refuses one text may take others."""
        self._count = 0 if error.divisible else self._count + 1
        return error.final or bool(self._most) and self._count >= self._most

    def ended(self) -> None:
        self._count = 0


# Replies have a thread of their own: one that waits behind the prompts of two hundred reports is
# not in the reply cache yet.
_REPLIES, _ASIDE = ThreadPoolExecutor(1, "asker-replies"), ThreadPoolExecutor(1, "asker-prompts")


async def aside(work: Callable[..., T], *arguments: Any, where: ThreadPoolExecutor = _ASIDE) -> T:
    """The result of a computation of milliseconds, made beside the loop: in it, every call under
    way would wait for it before its reply is taken and the next question goes out (a quarter of the
    wall time on a busy machine)."""
    return await asyncio.get_running_loop().run_in_executor(where, work, *arguments)


# of the texts of one embedding call together: some 6,000 tokens, which every server takes
EMBED_CHARACTERS = 24_000
NO_MODEL, BUDGET, STOPPED, REHEARSED = "no model", "budget", "stopped", "dry run"
FOR_AGENTS = "waits for an agent (claim_work)"
CUT_OFF = "the reply was cut off"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """One question. `parse` is pure and raises BadReply; `without` is the result when no one
    answers. `if_cut`: a reply that the server says it cut off is "kept", as what asks for the rest
    can, "refused", or "shown" and not kept. `doubt` says why a reply that can be read is asked for
    once more; then the one of more `worth` is the answer. `stored`: the reply is kept
    in the reply cache, as `kept` makes of it; parts of one that is not can be, with `Asker.keep`.
    `about`: the subject of the reply. If it is set, it replaces the prompt in the key, so
    that a change of the prompt's wording does not repeat the question."""

    kind: str
    messages: tuple[protocols.Message, ...]
    parse: Callable[[str], T]
    without: Callable[[], T]
    schema: Mapping[str, Any] | None = None
    if_cut: str = "kept"
    doubt: Callable[[T], str] = lambda _: ""
    worth: Callable[[T], int] = lambda _: 0
    stored: bool = True
    kept: Callable[[str], str] = lambda reply: reply
    about: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What the question is known by in the reply cache."""
        if not self.about:
            return key_of(self.messages, self.schema)
        subject = json.dumps([self.kind, self.about], ensure_ascii=False)
        return hashlib.sha256(subject.encode("utf-8", "replace")).hexdigest()

    def first_readable(self, replies: Iterable[Stored]) -> Answer[T] | None:
        """The answer of the first of these replies to it that can be read."""
        for reply in replies:
            try:
                return Answer(self.parse(reply.text), reply.answerer, raw=reply.text)
            except BadReply as error:  # written by a release that read replies differently
                log.debug("an answer in the book cannot be read (%s)", error)
        return None


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """`by` is "llm:<model>" or "agent:<name>", "" when `without` was used; then `reason` says why."""

    value: T
    by: str = ""
    reason: str = ""
    fresh: bool = False  # a call was made for it now
    raw: str = ""  # the reply as it stands in the book
    cut: bool = False
    failed: bool = False  # the call failed for another reason than its texts


def key_of(messages: Sequence[protocols.Message], schema: Mapping[str, Any] | None) -> str:
    """What a question is known by in the book: its words and the form wanted, not who is asked."""
    turns = [[message.role, message.content, *message.images] for message in messages]
    body = [turns, schema]
    text = json.dumps(body, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


class Asker:
    """One per corpus and run. Any thread may call it; coroutines run on the asker's own loop."""

    VAIN = 5  # replies asked for once more without a gain, after which none is any more

    def __init__(
        self,
        book: AnswerBook | None,
        chat: protocols.ChatModel | None,
        embedder: protocols.EmbeddingModel | None,
        *,
        budget: Budget | None = None,
        concurrency: int = 25,
        batch: int = 64,
        refresh: bool = False,
        retry_refused: bool = False,
        space: str = "",
        spent: Spent | None = None,
    ) -> None:
        self.book, self._chat, self._embedder = book, chat, embedder
        self.reranker: protocols.Reranker | None = None
        self.vision: Asker | None = None  # asks the model that sees pictures, within the same budget
        # Vectors made under the same words may be compared: the model's name, and their length
        # where it is set.
        self.embedding_model = space or (embedder.name if embedder else "")
        self.budget, self._spent = budget or Budget(), spent or Spent()
        self._batch, self._refresh, self._retry_refused = batch, refresh, retry_refused
        self._turns, self._concurrency = Turns(concurrency), concurrency
        most = concurrency * self.budget.gives_up
        self._streak, self._embed_streak = Streak(most), Streak(most)
        self._vain, self._doubted = 0, 0  # in a row without a gain; not read yet
        # Why no chat model answers: NO_MODEL, or what it said when it refused for good.
        self.why_off = "" if chat else NO_MODEL
        self._embed_off = "" if embedder else NO_MODEL
        self._flying: dict[str, asyncio.Future[None]] = {}
        self._saving: set[asyncio.Task[Any]] = set()  # replies that are not yet in the book
        self._asked: set[str] = set()  # keys asked again in this run, when refreshing
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()
        self._has: dict[str, bool] = {}
        self._has_embedded = False  # some vector came in this run
        self.length = 0  # bytes of a vector of this index, as soon as there is one
        self.broken: list[str] = []  # reasons for which calls gave no answer
        self.note = ""  # what a caller should be told of the book
        # In a dry run: what is told of each question in place of a model, and gives the reply that is
        # read as the model's; "" for none. Nothing is kept.
        self.rehearsal: Callable[[Ask[Any]], str] | None = None

    # ---- what there is --------------------------------------------------------------------------

    @property
    def on(self) -> bool:
        """A chat model is configured and has not failed for good."""
        return not self.why_off

    @property
    def embeds(self) -> bool:
        return not self._embed_off

    @property
    def reranks(self) -> bool:
        return self.reranker is not None

    @property
    def model(self) -> str:
        return self._chat.name if self._chat else ""

    @property
    def text_prompt(self) -> str:
        """What the embedding model wants before a text."""
        return getattr(self._embedder, "text_prompt", "")

    @property
    def why_no_vectors(self) -> str:
        """Why the last texts that were to be embedded have no vector."""
        return self._embed_off or (BUDGET if self._spent.over else next(iter(self.broken[-1:]), ""))

    def may_answer(self, kind: str) -> bool:
        """Could a question of this kind be answered at all: by a model, or from the book?"""
        return self._chat is not None or self.has_answers(kind)

    def has_answers(self, kind: str) -> bool:
        """Did the book hold an answer to a question of this kind when this was asked first?"""
        if kind not in self._has:
            self._has[kind] = self.book is not None and self.book.has(kind)
        return self._has[kind]

    @property
    def refreshes(self) -> bool:
        """Is every question asked again?"""
        return self._refresh and self.on

    def leave_to_agents(self) -> None:
        """Say of what no one answers that it waits for an agent."""
        self.why_off = FOR_AGENTS if self.why_off == NO_MODEL else self.why_off

    def known(self, ask: Ask[T]) -> Answer[T] | None:
        """The answer that the book holds; None without one, or where it is asked for again."""
        return self._known(ask, ask.key)

    async def keep(self, ask: Ask[Any], text: str) -> None:
        """Keep a part of a reply of this model as the reply to this question."""
        from graphrag_mcp.store.reply_cache import Stored

        if self.book is not None and self.rehearsal is None:
            key = ask.key
            await self._save(self.book.put, [Stored(key, f"llm:{self.model}", ask.kind, text)])
            self._asked.add(key)

    def refused(self, ask: Ask[Any]) -> str:
        """Why this question is not asked: the replies of this model to it were refused twice. "" for
        every other question."""
        return self._refusal(ask.key)

    def _refusal(self, key: str) -> str:
        again = (self._refresh or self._retry_refused) and key not in self._asked
        if self.book is None or self._chat is None or again:
            return ""
        return self.book.refusal(key, f"llm:{self.model}")

    def still_refused(self, reason: str) -> bool:
        """Does this reason of an open question tell of a refusal that holds for this model?"""
        if self._refresh or self._retry_refused or f"{protocols.TWICE} by {self.model}: " not in reason:
            return False
        return self.has_answers("refused")

    def answered(self, key: str) -> bool:
        """Does the book hold an answer to this question?"""
        return self.book is not None and bool(self.book.get(key))

    def spent(self) -> Spent:
        return self._spent

    # ---- running --------------------------------------------------------------------------------

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run async code on the asker's loop; the result is a future for the calling thread."""
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="asker", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def warm(self) -> None:
        """Load what the first call needs, half a second for a client, while there is nothing to ask yet."""
        if (warm := getattr(self._chat, "warm", None)) is not None:
            self.start(aside(warm))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.start(work).result()

    def stop(self) -> None:
        """Ask nothing more; what is in flight is given up, what has been answered is in the book."""
        self.why_off = self.why_off or STOPPED
        self._embed_off = self._embed_off or STOPPED
        if self.vision is not None:
            self.vision.stop()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._cancel_all)

    def _cancel_all(self) -> None:
        for task in asyncio.all_tasks() - self._saving:
            task.cancel()

    def close(self) -> None:
        """End the loop and close what it holds. The book stays usable for others."""
        if self._loop is not None:
            self.stop()
            try:
                asyncio.run_coroutine_threadsafe(self._closing(), self._loop).result(10)
            except Exception as error:
                # A connection that does not close cleanly is no reason to fail.
                log.debug("closing a model: %r", error)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None
        if self.vision is not None:
            self.vision.close()
        if self.book is not None:
            self.book.close()

    async def _closing(self) -> None:
        while self._saving:
            await asyncio.wait(self._saving)
        for model in (self._chat, self._embedder, self.reranker):
            if model is not None:
                await model.close()

    async def _save(self, work: Callable[..., T], *arguments: Any) -> T:
        """`work` in the thread of replies, also when this run is stopped: a paid reply is kept."""
        saving = asyncio.get_running_loop().create_task(aside(work, *arguments, where=_REPLIES))
        self._saving.add(saving)
        saving.add_done_callback(self._saving.discard)
        return await asyncio.shield(saving)

    # ---- asking ---------------------------------------------------------------------------------

    async def ask(self, ask: Ask[T], *, on_text: Callable[[str], None] | None = None) -> Answer[T]:
        """The book, else the model (once more when its reply cannot be used), else `without`; never
        raises for a model.

        Two questions with the same words at the same time are one call."""
        key = ask.key
        while key in self._flying:
            await asyncio.shield(self._flying[key])
        if (known := self._known(ask, key)) is not None:
            return known
        if why := self._refusal(key) or self.why_off:
            return Answer(ask.without(), reason=why)
        if self.rehearsal is not None:
            reply = self.rehearsal(ask)
            value = ask.parse(reply) if reply else ask.without()
            return Answer(value, reason=REHEARSED, failed=True)  # nothing is asked once more
        landed = self._flying[key] = asyncio.get_running_loop().create_future()
        try:
            answer = await self._call(ask, key, on_text)
        finally:
            del self._flying[key]
            landed.set_result(None)
        if self._refresh and not answer.by and (known := self._known(ask, key, again=False)):
            why = f"Not every answer could be had again ({answer.reason}); that from before stays."
            self.note = self.note or why
            return known
        return answer

    def _known(self, ask: Ask[T], key: str, again: bool = True) -> Answer[T] | None:
        if self.book is None or (again and self._refresh and self.on and key not in self._asked):
            return None
        return ask.first_readable(self.book.get(key, f"llm:{self.model}"))

    @property
    def _in_vain(self) -> bool:
        """Has the model not done better VAIN times, or would it, were those under way the same?"""
        most = self.VAIN + self._concurrency - 1
        return self._vain >= self.VAIN or self._vain + self._doubted >= most

    async def _call(self, ask: Ask[T], key: str, on_text: Callable[[str], None] | None) -> Answer[T]:
        reason, first = "", None  # `first`: an answer that is doubted
        tries, cut = 2, False  # `cut`: where the limits of the run cut the last reply
        while tries:
            try:
                # Not while a reply is read and written down: the next call may go out.
                async with self._turns.turn(QUESTIONS):
                    if first and self._in_vain:
                        return first
                    messages = self._messages(ask, reason, first is not None)
                    counted = self._counted(message.content for message in messages)
                    async with self._paid(ask.kind, counted, cut) as call:
                        if isinstance(call, str):
                            return first or Answer(ask.without(), reason=reason or call)
                        self._doubted += first is not None
                        reply = await self._complete(ask, messages, counted, call.reply, on_text)
            except ModelError as error:
                self._doubted -= first is not None
                reason = str(error) if error.final else error.what
                self.broken.append(reason)
                if self._streak.failed(error):
                    self.why_off = reason
                failed = not error.divisible
                return first or Answer(ask.without(), reason=reason, failed=failed)
            if cut := reply.finish == "length" and 0 < call.reply <= reply.usage.output_tokens:
                self._doubted -= first is not None
                continue
            tries -= 1
            taken = await self._save(self._take, ask, key, reply, first)
            if first is not None:
                self._doubted -= 1
                if isinstance(taken, BadReply) or taken is first:
                    self._vain += 1
                    return first
                self._vain = 0
                return taken
            if isinstance(taken, BadReply):
                reason = CUT_OFF if reply.finish == "length" else str(taken) or "unusable reply"
            # of what was cut off the rest is asked for
            elif doubt := "" if taken.cut else ask.doubt(taken.value):
                reason, first = doubt, taken
            else:
                return taken
        self.broken.append(reason)
        if ask.stored:
            reason = await self._save(self._keep_refusal, ask.kind, key, reason)
        return Answer(ask.without(), reason=reason)

    def _keep_refusal(self, kind: str, key: str, reason: str) -> str:
        """Write down why both replies to a question of indexing were refused, so that no further run
        pays for them. An older reply of this model stays. Returns the reason as it is told."""
        from graphrag_mcp.store.reply_cache import REFUSED, Stored
        from graphrag_mcp.store.shared_replies import OF_INDEXING

        if self.book is None or kind not in OF_INDEXING:
            return reason
        by, message = f"llm:{self.model}", f"{protocols.TWICE} by {self.model}: {reason}"
        if by not in {reply.answerer for reply in self.book.get(key, by)}:
            self.book.put([Stored(key, by, REFUSED, message)])
        self._asked.add(key)
        return message

    def _take(self, ask: Ask[T], key: str, reply: protocols.Reply, first: Answer[T] | None) -> Answer[T] | BadReply:
        """Read a reply and write it down, unless the `first` one is worth as much."""
        from graphrag_mcp.store.reply_cache import Stored

        if (cut := reply.finish in ("length", "content_filter")) and ask.if_cut == "refused":
            return BadReply(CUT_OFF)
        usage, text, by = reply.usage, storable(reply.text), f"llm:{self.model}"
        try:
            value = ask.parse(text)
        except BadReply as error:
            return error
        if first is not None and ask.worth(value) <= ask.worth(first.value):
            return first
        if self.book is not None and ask.stored and not (cut and ask.if_cut == "shown"):
            tokens = usage.prompt_tokens, usage.output_tokens
            self.book.put([Stored(key, by, ask.kind, ask.kept(text), *tokens)])
        self._asked.add(key)
        return Answer(value, by, fresh=True, raw=text, cut=cut)

    def _messages(self, ask: Ask[T], reason: str, in_part: bool) -> list[protocols.Message]:
        messages = list(ask.messages)
        if reason:  # the same words again would often get the same reply
            used = "could only be used in part" if in_part else "could not be used"
            note = f"\n\nA first reply {used} ({reason}). Keep exactly to the format asked for."
            messages[-1] = replace(messages[-1], content=messages[-1].content + note)
        return messages

    def _counted(self, texts: Iterable[str]) -> int:
        """The tokens of a prompt, 0 where no limit asks for them."""
        return sum(map(count_tokens, texts)) if self.budget.counts_tokens else 0

    @asynccontextmanager
    async def _paid(self, kind: str, prompt: int, cut: bool = False) -> AsyncIterator[Reserved | str]:
        """What is reserved for a call with a prompt of so many tokens until it has ended, or why it is not
        made. It waits for calls under way, which may leave enough of the budget."""
        spent = self._spent
        while True:
            with spent.lock:
                why = self._embed_off if kind == EMBEDDING else self.why_off
                call = None if why else self.budget.allowed(spent, kind, prompt, cut)
                if call is not None:
                    spent.called(kind)
                    spent.reserved.append(call)
                    break
                if why or not spent.reserved:
                    spent.over = spent.over or not why
                    break
            # Calls of one budget run on two loops, which share no event: the other is of pictures.
            await asyncio.sleep(0.02)
        try:
            yield call or why or BUDGET
        finally:
            if call is not None:
                with spent.lock:
                    spent.reserved.remove(call)
                    spent.largest.setdefault(kind, protocols.Usage())  # also of one that failed

    async def _complete(
        self,
        ask: Ask[T],
        messages: Sequence[protocols.Message],
        counted: int,
        most: int,
        on_text: Callable[[str], None] | None,
    ) -> protocols.Reply:
        assert self._chat is not None
        reply = await self._chat.complete(messages, schema=ask.schema, max_output=most, on_text=on_text)
        self._streak.ended()
        self._spent.used(ask.kind, reply.usage, self.budget.cost(ask.kind, reply.usage), counted)
        return reply

    # ---- vectors --------------------------------------------------------------------------------

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[bytes | None]:
        """float32 vectors of texts, from the book or in batches from the model; None where there is
        none.

        `query`: the texts are questions, before which some models want other words than before what
        is searched."""
        if self._embedder is None:
            return [None] * len(texts)
        prompt = getattr(self._embedder, "query_prompt" if query else "text_prompt", "")
        keys, found, calls = self._without_vector([prompt + text for text in texts])
        for vectors in await asyncio.gather(*map(self._embed, calls)):
            found.update(vectors)
        return [found.get(key) for key in keys]

    def embedding_calls(self, texts: Sequence[str]) -> list[list[str]]:
        """The texts without a vector in the book, in the calls in which `embed` would send them."""
        *_, calls = self._without_vector([self.text_prompt + text for text in texts])
        return [list(call.values()) for call in calls]

    def _without_vector(self, texts: Sequence[str]) -> tuple[list[str], dict[str, bytes], list[dict[str, str]]]:
        """The keys of texts, the vectors that the book holds of them, and the others by key, in calls."""
        keys = [hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() for text in texts]
        known = self._kept_vectors(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        return keys, known, batches(missing, self._batch, EMBED_CHARACTERS)

    def _kept_vectors(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The vectors that the book holds under these keys, of the length that this index has."""
        if self.book is None:
            return {}
        self.length = self.length or self.book.length(self.embedding_model)
        known = self.book.vectors(list(dict.fromkeys(keys)), self.embedding_model)
        return {key: vector for key, vector in known.items() if len(vector) == self.length}

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float] | None:
        """Scores of texts for a question, for worker threads; None without a reranker or reply."""
        if self.reranker is None:
            return None
        try:
            return self.wait(self.reranker.rerank(query, texts))
        except ModelError as error:
            self.broken.append(error.what)
            self.reranker = None if error.final else self.reranker
            return None

    async def _embed(self, batch: Mapping[str, str]) -> dict[str, bytes]:
        """Vectors of one call, or of the parts of a batch that is refused: one text that is too
        long must not cost the others theirs. Where no vector ever came two texts go ahead, since a
        server may refuse everything."""
        vectors = await self._vectors_of(batch)
        if vectors is not None:
            return vectors
        rest, vectors = dict(batch), {}
        # a text of a few signs may be the one that is refused
        lengths = sorted(rest, key=lambda key: len(rest[key]))
        for key in () if self._has_embedded else (lengths[0], lengths[len(lengths) // 2]):
            vectors = vectors or await self._vectors_of({key: rest.pop(key)}) or {}
        if not (vectors or self._has_embedded):
            return {}
        halves = batches(rest, (len(rest) + 1) // 2, 10**9)
        for found in await asyncio.gather(*map(self._embed, halves)):
            vectors.update(found)
        return vectors

    async def _vectors_of(self, batch: Mapping[str, str]) -> dict[str, bytes] | None:
        """Vectors of one call; None when in smaller parts these texts might be welcome."""
        assert self._embedder is not None
        counted = self._counted(batch.values())
        async with self._turns.turn(VECTORS), self._paid(EMBEDDING, counted) as call:
            if isinstance(call, str):
                return {}
            try:
                response = await self._embedder.embed(list(batch.values()))
            except ModelError as error:
                if error.divisible and len(batch) > 1:
                    return None
                self.broken.append(error.what)
                if self._embed_streak.failed(error):
                    self._embed_off = str(error)
                return {}
        self._embed_streak.ended()
        cost = self.budget.cost(EMBEDDING, response.usage)
        self._spent.used(EMBEDDING, response.usage, cost, counted)
        self._has_embedded, self.length = True, self.length or 4 * response.dimension
        if 4 * response.dimension != self.length:
            model, now, before = self.embedding_model, response.dimension, self.length // 4
            self._embed_off = (
                f"the embedding model {model!r} gave vectors of {now} numbers, and those of this index have {before}. "
                f"Use the model that made them, or set embedding_dimensions to {now} to make all of them again."
            )
            self.broken.append(self._embed_off)
            return {}
        vectors = dict(zip(batch, response.vectors, strict=True))
        if self.book is not None:
            tokens = response.usage.prompt_tokens
            await self._save(self.book.put_vectors, self.embedding_model, vectors, tokens)
        return vectors


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """With an orderly end: a loop that is only stopped keeps its sockets and threads."""
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
