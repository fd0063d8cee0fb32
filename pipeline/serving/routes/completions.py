"""The routes of OpenAI's for language models: /v1/completions, /v1/models."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tfm.pipeline.serving.backend import Backend
from tfm.pipeline.serving.catalog import ServedModel
from tfm.pipeline.serving.dispatch.messages import Query
from tfm.pipeline.serving.problems import Problem, bad_request
from tfm.pipeline.serving.routes.bodies import (
    cancel_on_disconnect,
    check_has_no_surrogates,
    read_fields,
    validate_fields,
)
from tfm.pipeline.serving.routes.endpoint import admit, make_endpoint, problem_response
from tfm.pipeline.serving.routes.stop_sequences import StopSequenceFilter
from tfm.pipeline.serving.translation_service import errors_as_problems

MAX_STOP_SEQUENCES = 4
DEFAULT_MAX_TOKENS = 16
"""As many as OpenAI's API writes where a request names no number."""


class StreamOptions(BaseModel):
    """The options of a stream."""

    include_usage: bool | None = Field(None, description="whether a last part has the numbers of tokens")


class CompletionBody(BaseModel):
    """The fields of POST /v1/completions.

    A field that would change the text and is not done is refused, also one that OpenAI's API does not have.
    """

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(None, description="name of the model; optional if there is only one")
    prompt: str | list[str] = Field("", description="the beginning of the text")
    max_tokens: int | None = Field(None, ge=1, description="the most tokens of the text, 16 by default")
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    seed: int | None = Field(None, ge=0, lt=2**32, description="of every draw, 1 by default")
    stop: str | list[str] | None = Field(None, description="texts before which the text ends")
    stream: bool = Field(False, description="whether it comes in parts, as server-sent events")
    echo: bool = Field(False, description="whether the prompt comes before the text")
    n: int | None = Field(None, description="1")
    best_of: int | None = Field(None, description="1")
    logprobs: int | None = Field(None, description="not given")
    suffix: str | None = Field(None, description="not done")
    presence_penalty: float | None = Field(None, description="0")
    frequency_penalty: float | None = Field(None, description="0")
    logit_bias: dict[str, float] | None = Field(None, description="not done")
    stream_options: StreamOptions | None = None
    api_key: str | None = None
    user: str | None = Field(None, description="has no effect, as the four that follow")
    metadata: dict[str, str] | None = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None

    def unsupported_problem(self) -> str | None:
        """Return the reason why a request for what this server does not do is refused; None if it does all."""
        for name, neutral in (("n", 1), ("best_of", 1), ("presence_penalty", 0), ("frequency_penalty", 0)):
            if getattr(self, name) not in (None, neutral):
                return f"{name} ({getattr(self, name)}) is {neutral} on this server: remove it"
        for name in ("logprobs", "suffix", "logit_bias"):
            if getattr(self, name) not in (None, "", {}):
                return f"{name} is not done by this server: remove it"
        return None


def completion_routes(backend: Backend) -> list[Route]:
    """The routes of a server with language models; /v1/models lists all models."""

    def list_generative_models() -> list[ServedModel]:
        return [each for each in backend.catalog.models.values() if each.abilities.continues_text]

    async def complete(request: Request) -> Response:
        fields = await read_fields(request, backend.limits)
        admit(backend, request, fields)
        body = validate_fields(CompletionBody, fields)
        if (problem := body.unsupported_problem()) is not None:
            raise bad_request(problem)
        prompt, stops = _validate_prompt(backend, body), _stop_sequences(body)
        request.state.texts = [prompt]
        model = backend.choose_model(body.model, "writes texts", list_generative_models())
        completion = Completion(backend, model, body, prompt, stops, request.state.number)
        if body.stream:
            has_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
            return await _stream_response(request, completion, has_usage=has_usage)
        return JSONResponse(await cancel_on_disconnect(request, completion.full_response()))

    async def list_models(request: Request) -> Response:
        data = [_model_as_json(each) for each in backend.catalog.models.values()]
        return JSONResponse({"object": "list", "data": data})

    async def retrieve_model(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in backend.catalog.models:
            raise Problem(404, f"model: this server has no {name[:80]!r}; it has {', '.join(backend.catalog.models)}")
        return JSONResponse(_model_as_json(backend.catalog.models[name]))

    return [
        Route("/v1/completions", make_endpoint(backend, "/v1/completions", complete), methods=["POST"]),
        Route("/v1/models", make_endpoint(backend, "/v1/models", list_models)),
        Route("/v1/models/{name:path}", make_endpoint(backend, "/v1/models/NAME", retrieve_model)),
    ]


class Completion:
    """A text after a prompt.

    Args:
        backend: of the server.
        model: that writes it.
        body: of the request.
        prompt: the prompt.
        stops: texts before which it ends.
        number: of the request.
    """

    def __init__(
        self, backend: Backend, model: ServedModel, body: CompletionBody, prompt: str, stops: list[str], number: str
    ) -> None:
        self._backend, self._model, self._body, self._prompt, self._stops = backend, model, body, prompt, stops
        self._number = number

    async def full_response(self) -> dict[str, Any]:
        """The response with all of the text."""
        texts: list[str] = []
        end: dict[str, Any] = {}
        async for part in self.stream_parts():
            if isinstance(part, str):
                texts.append(part)
            else:
                end = part
        return self.as_json("".join(texts), end["finish"]) | {"usage": _usage_as_json(end)}

    async def stream_parts(self) -> AsyncGenerator[Any]:
        """Yield the parts of the text as they are generated, then the reason of its end. Raises Problem on failure."""
        backend, stop = self._backend, StopSequenceFilter(self._stops)
        if self._body.echo:
            yield self._prompt
        num_parts = 0
        answer = backend.dispatcher.stream(self._make_query(), backend.limits.seconds)
        with errors_as_problems(backend.limits.seconds):
            async with aclosing(answer):
                async for part in answer:
                    if not isinstance(part, str):
                        if rest := stop.flush():
                            yield rest
                        yield part
                        return
                    num_parts += 1
                    if text := stop.add(part):
                        yield text
                    if stop.is_reached:
                        yield {"finish": "stop", "prompt_tokens": self._count_tokens(self._prompt), "tokens": num_parts}
                        return

    def as_json(self, text: str, finish: str | None) -> dict[str, Any]:
        """A completion, or a part of one, as OpenAI's clients read it."""
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        header = {"id": f"cmpl-{self._number}", "object": "text_completion", "created": 0, "model": self._model.name}
        return {**header, "choices": [choice]}

    def last_part_as_json(self, end: dict[str, Any]) -> dict[str, Any]:
        """The part of a stream with the numbers of tokens, which comes where it was asked for."""
        return {**self.as_json("", None), "choices": [], "usage": _usage_as_json(end)}

    def _make_query(self) -> Query:
        body, limits = self._body, self._backend.limits
        tokens = DEFAULT_MAX_TOKENS if body.max_tokens is None else body.max_tokens
        if tokens > limits.tokens:
            raise bad_request(f"max_tokens ({tokens}) may be {limits.tokens} at most on this server")
        settings = {"temperature": body.temperature, "top_p": body.top_p, "seed": body.seed, "max_length": tokens}
        sampling = tuple((name, value) for name, value in settings.items() if value is not None)
        return Query(self._model.version.key, "generate", self._prompt, sampling=sampling)

    def _count_tokens(self, text: str) -> int:
        return len(self._model.tokenizer.encode(text))


def _usage_as_json(end: dict[str, Any]) -> dict[str, int]:
    """The numbers of tokens of a text that has ended."""
    tokens = {"prompt_tokens": end["prompt_tokens"], "completion_tokens": end["tokens"]}
    return {**tokens, "total_tokens": sum(tokens.values())}


async def _stream_response(request: Request, completion: Completion, *, has_usage: bool) -> Response:
    """The response as server-sent events. A problem that shows before the first part has its status.

    Args:
        request: the request.
        completion: the text.
        has_usage: whether the numbers of tokens come last.
    """
    parts = completion.stream_parts()
    try:
        first = await cancel_on_disconnect(request, anext(parts))
    except Problem as problem:
        return problem_response(request, problem)

    async def events() -> AsyncIterator[str]:
        part = first
        async with aclosing(parts):
            while True:
                finish = None if isinstance(part, str) else part["finish"]
                yield _format_server_sent_event(completion.as_json(part if finish is None else "", finish))
                if finish is not None:
                    if has_usage:
                        yield _format_server_sent_event(completion.last_part_as_json(part))
                    break
                try:
                    part = await anext(parts)
                except Problem as problem:
                    yield _format_server_sent_event({"error": {"message": problem.sentence, "type": "server_error"}})
                    break
        yield "data: [DONE]\n\n"

    return StreamingResponse(
        events(), media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


def _format_server_sent_event(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def _validate_prompt(backend: Backend, body: CompletionBody) -> str:
    """Return the single prompt. Raises Problem for several prompts, or for one that is too long."""
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    if len(prompts) != 1:
        raise bad_request(f"prompt has {len(prompts)} texts and may have 1: send a request for each")
    if len(prompts[0]) > backend.limits.chars:
        limit = backend.limits.chars
        raise bad_request(f"prompt has {len(prompts[0]):,} characters and may have {limit:,}: shorten it")
    return check_has_no_surrogates(prompts[0], "prompt")


def _stop_sequences(body: CompletionBody) -> list[str]:
    """The texts before which a completion ends. Raises Problem if they are too many."""
    stops = [body.stop] if isinstance(body.stop, str) else [*(body.stop or [])]
    if len(stops) > MAX_STOP_SEQUENCES:
        raise bad_request(f"stop has {len(stops)} texts and may have {MAX_STOP_SEQUENCES}: remove some")
    return [stop for stop in stops if stop]


def _model_as_json(model: ServedModel) -> dict[str, Any]:
    header = {"id": model.name, "object": "model", "created": 0, "owned_by": "tfm"}
    pairs = [{"source": source, "target": target} for source, target in model.pairs]
    version = model.version
    shortlist = None if version.shortlist is None else version.shortlist.fingerprint
    details = {"task": version.task, "images": version.reads_images, "fingerprint": version.fingerprint, "pairs": pairs}
    return {**header, **details, "shortlist": shortlist}
