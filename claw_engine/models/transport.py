"""The HTTP half of a model call: POST a body, hand back the server-sent events as they arrive.

Turns every failure into a typed ModelError. Knows no message format and never retries: waiting and
trying again belong to the agent.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from claw_engine.models.base import Encoded, ModelConfigError, ModelError, ModelErrorKind, ModelRef
from claw_engine.models.errors import (
    ProviderError,
    read_provider_error,
    redact,
    redirect_error,
    secrets_of,
    status_error,
)
from claw_engine.net.http import HttpTimeouts, http_client
from claw_engine.net.retry_after import retry_after_ms
from claw_engine.net.sse import EventTooLargeError, SseDecoder
from claw_engine.world import Clock

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

# How much of an error answer is read, in bytes.
_ERROR_BODY_LIMIT = 64 * 1024


class Transport:
    """HTTP clients, one for each server, made on first use. `aclose` ends them all."""

    def __init__(self, clock: Clock, timeouts: HttpTimeouts | None = None) -> None:
        self._clock = clock
        self._timeouts = timeouts or HttpTimeouts()
        self._clients: dict[str, httpx2.AsyncClient] = {}

    async def events(self, ref: ModelRef, encoded: Encoded) -> AsyncGenerator[list[str], None]:
        """POST and yield the data texts of the events that each read of the socket completed.

        A server that answers with one JSON object instead of a stream yields just that object.
        Closing the iterator closes the socket at once. Raises ModelError.
        """
        client = await self._client(encoded.url)
        import httpx2  # loaded by _client; a module-level import would cost every start

        secrets = secrets_of(encoded.headers)
        answered = False
        try:
            async with client.stream(
                "POST", encoded.url, content=encoded.body, headers=_headers(encoded.headers)
            ) as response:
                if response.status_code != 200:
                    raise await self._refusal(ref, response, secrets)
                answered = True
                async with contextlib.aclosing(_read(ref, response)) as events:
                    async for batch in events:
                        yield batch
        except httpx2.InvalidURL as error:
            raise ModelConfigError(
                f"The base URL {ref.base_url} of {ref.provider} is not a web address.",
                hint=f"Correct models.providers.{ref.provider}.baseUrl ({error}).",
            ) from None
        except (httpx2.RequestError, httpx2.StreamError) as error:
            raise _transport_error(ref, error, answered=answered, secrets=secrets) from None

    async def warm_up(self, url: str) -> None:
        """Load the HTTP library and make the client for a server, TLS context included, ahead of
        the first call. Nothing is sent. Raises what making a client raises."""
        await self._client(url)

    async def aclose(self) -> None:
        """Close every client. The transport may be used again afterwards."""
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            with contextlib.suppress(Exception):
                await client.aclose()

    async def _client(self, url: str) -> httpx2.AsyncClient:
        parts = urlsplit(url)
        key = f"{parts.scheme}://{parts.netloc}"
        if key not in self._clients:
            client = await http_client(url, self._timeouts)
            if key in self._clients:  # another call was faster while the modules loaded
                await client.aclose()
            else:
                self._clients[key] = client
        return self._clients[key]

    async def _refusal(
        self, ref: ModelRef, response: httpx2.Response, secrets: tuple[str, ...]
    ) -> ModelError:
        location = response.headers.get("location", "")
        if 300 <= response.status_code < 400 and location:
            return redirect_error(ref, response.status_code, redact(location, secrets))
        body = await _error_body(response)
        return RefusedRequest.of(
            ref,
            response.status_code,
            read_provider_error(body),
            retry_after_ms(response.headers, self._clock.now_ms()),
            secrets,
        )


class RefusedRequest(ModelError):
    """A non-200 answer. `evidence` is the provider's sentence, from which rules are learned."""

    evidence = ""

    @classmethod
    def of(
        cls,
        ref: ModelRef,
        status: int,
        error: ProviderError,
        wait_ms: int | None,
        secrets: tuple[str, ...],
    ) -> RefusedRequest:
        judged = status_error(ref, status, error, retry_after_ms=wait_ms, secrets=secrets)
        refused = cls(
            judged.title,
            kind=judged.kind,
            hint=judged.hint,
            status=status,
            retry_after_ms=wait_ms,
        )
        refused.evidence = redact(error.message, secrets)
        return refused


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",  # compression would only hold tokens back
        **given,
    }


async def _read(ref: ModelRef, response: httpx2.Response) -> AsyncGenerator[list[str], None]:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/html":
        raise ModelError(
            f"{ref.provider} answered with a web page instead of a model's answer.",
            kind=ModelErrorKind.NOT_FOUND,
            hint=f"Check the base URL {ref.base_url}: it must be the API, often ending in /v1, "
            "and no login page or proxy may stand before it.",
            status=200,
        )
    if kind == "application/json":
        yield [(await response.aread()).decode("utf-8", "replace")]
        return
    # Whatever else the type says: some servers stream events as text/plain or without a type.
    encoded = "content-encoding" in response.headers
    decoder = SseDecoder()
    try:
        async for chunk in response.aiter_bytes() if encoded else response.aiter_raw():
            if batch := decoder.feed(chunk):
                yield batch
    except EventTooLargeError:
        raise ModelError(
            f"{ref.provider} ({ref.id}) sent a piece of answer that is too large.",
            kind=ModelErrorKind.SERVER,
            hint="Check that the base URL is an OpenAI-compatible API.",
        ) from None
    if batch := decoder.flush():
        yield batch


async def _error_body(response: httpx2.Response) -> bytes:
    """The first 64 KiB of an error answer; what could be read when the connection breaks."""
    import httpx2  # already loaded, see Transport.events

    body = b""
    with contextlib.suppress(httpx2.RequestError, httpx2.StreamError):
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) >= _ERROR_BODY_LIMIT:
                break
    return body


def _transport_error(
    ref: ModelRef, error: Exception, *, answered: bool, secrets: tuple[str, ...]
) -> ModelError:
    import httpx2  # already loaded, see Transport.events

    parts = urlsplit(ref.base_url or "")
    place = parts.netloc.rpartition("@")[2] or "(no host)"
    reason = redact(" ".join(str(error).split()), secrets)[:200] or type(error).__name__
    log.debug("model transport: provider=%s %s: %s", ref.provider, type(error).__name__, reason)
    match error:
        case httpx2.UnsupportedProtocol():
            return ModelConfigError(
                f"The base URL {ref.base_url} of {ref.provider} is not an http(s) address.",
                hint=f"Correct models.providers.{ref.provider}.baseUrl.",
            )
        case httpx2.ReadTimeout() | httpx2.WriteTimeout():
            return ModelError(
                f"{ref.provider} ({ref.id}) fell silent, the call was given up.",
                kind=ModelErrorKind.TIMEOUT,
                hint="Try again, or choose a faster model.",
            )
        case httpx2.ConnectError() if parts.scheme == "https" and _speaks_plain(reason):
            return ModelError(
                f"{ref.provider} at {place} does not speak TLS: {reason}.",
                kind=ModelErrorKind.NETWORK,
                hint=f"If it is a plain HTTP server, write "
                f"models.providers.{ref.provider}.baseUrl with http:// instead of https://.",
            )
        case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.ProxyError():
            return ModelError(
                f"Could not connect to {ref.provider} at {place}: {reason}.",
                kind=ModelErrorKind.NETWORK,
                hint="Check that the server runs and that the base URL and the network are right.",
            )
    if answered:
        return ModelError(
            f"The connection to {ref.provider} ({ref.id}) broke in the middle of its answer.",
            kind=ModelErrorKind.CUT,
            hint="Try again. If it repeats, look at the provider's or the proxy's limits.",
        )
    return ModelError(
        f"The connection to {ref.provider} at {place} broke: {reason}.",
        kind=ModelErrorKind.NETWORK,
        hint="Check the network and the base URL, then try again.",
    )


def _speaks_plain(reason: str) -> bool:
    """OpenSSL's words (1.1, 3.x) for an answer that is no TLS record."""
    words = reason.lower().replace("_", " ")
    return any(w in words for w in ("wrong version number", "record layer failure", "http request"))
