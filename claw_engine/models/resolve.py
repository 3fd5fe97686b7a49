"""From settings and environment to a `ModelRef`, or to an error that names the setting. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from claw_engine.models.base import REHEARSAL_PROVIDER, ModelConfigError, ModelRef
from claw_engine.models.providers import (
    OPENAI_COMPLETIONS,
    Provider,
    canonical,
    first_set,
    in_environment,
    known,
    normal_base_url,
)
from claw_engine.models.rehearsal import REHEARSAL

if TYPE_CHECKING:
    from claw_engine.config.sections.models import ProviderModel, ProviderSettings
    from claw_engine.config.settings import Settings

# Set to `provider/model` (also `rehearsal/stage`) to choose without a configuration file.
MODEL_VARIABLE = "CLAW_MODEL"

_REFERENCE = re.compile(r"\$\{[^}]*\}")
_VARIABLE_NAME = re.compile(r"^[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|SECRET)$")
_LABEL = re.compile(r"[\w-]+")
_PRACTISE = f"To practise without a model, set {MODEL_VARIABLE}=rehearsal/stage."


def default_model(settings: Settings) -> ModelRef:
    """The model a new run uses. Raises ModelConfigError."""
    primary = settings.agents.defaults.model.primary
    if primary is not None:
        return named_model(settings, primary)
    _refuse_unread_sections(settings)
    if settings.models.providers:
        return _first_configured(settings)
    chosen = settings.env.get(MODEL_VARIABLE, "").strip()
    if chosen:
        return named_model(settings, chosen)
    provider = in_environment(settings.env)
    return REHEARSAL if provider is None else _build(settings, provider.name, None)


def named_model(settings: Settings, name: str) -> ModelRef:
    """`provider/id`, a user's alias, or a bare id when exactly one provider lists it."""
    wanted = _unalias(settings, name.strip())
    if found := _REFERENCE.search(wanted):
        raise ModelConfigError(
            f"The model name {wanted} holds the variable {found[0]}, which is not set.",
            hint="Set the variable or write the name in agents.defaults.model.primary.",
        )
    provider, slash, model_id = wanted.partition("/")
    if not slash:
        return _bare(settings, wanted)
    if not model_id.strip():
        raise ModelConfigError(
            f"The model {name!r} names a provider but no model.",
            hint="Write agents.defaults.model.primary as provider/model.",
        )
    if canonical(provider) == REHEARSAL_PROVIDER:
        if model_id != REHEARSAL.id:
            raise ModelConfigError(
                f"The rehearsal model {name!r} does not exist.", hint=f"Use {REHEARSAL.name}."
            )
        return REHEARSAL
    return _build(settings, provider, model_id)


def configured_models(settings: Settings) -> list[ModelRef]:
    """The models that the configuration lists and that can be used."""
    refs: list[ModelRef] = []
    for name, provider in settings.models.providers.items():
        for model in provider.models:
            try:
                refs.append(_build(settings, name, model.id))
            except ModelConfigError:
                continue
    return refs


def unspoken_api(provider: str, api: str) -> ModelConfigError:
    """The error for a provider whose protocol is not implemented."""
    return ModelConfigError(
        f"The provider {provider} uses the API {api}, which is not supported yet.",
        hint=f"Use its OpenAI-compatible address with api {OPENAI_COMPLETIONS}, "
        f"or another provider. {_PRACTISE}",
    )


def require_web_address(url: str, provider: str) -> None:
    """Raises ModelConfigError unless `url` is http(s) with a host and nothing odd in it."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.port != 0
        usable = usable and _can_be_a_host(parts.hostname or "")
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise ModelConfigError(
            f"The base URL {url!r} of {provider} is not a web address.",
            hint=f"Write models.providers.{provider}.baseUrl, or the variable that names it, "
            "as http://host:port/v1 or https://host/v1.",
        )


def _can_be_a_host(name: str) -> bool:
    """Whether a look-up could succeed: an address, or labels of 1 to 63 letters and digits."""
    if ":" in name:  # urlsplit has seen to the brackets
        return True
    labels = name.removesuffix(".").split(".")
    return all(0 < len(label) < 64 and _LABEL.fullmatch(label) for label in labels)


def _refuse_unread_sections(settings: Settings) -> None:
    """A section that failed validation reads as empty; a model it names must not be forgotten."""
    raw = settings.raw
    agents = _mapping(_mapping(raw.get("agents")).get("defaults"))
    if agents.get("model") or (
        _mapping(raw.get("models")).get("providers") and not settings.models.providers
    ):
        raise ModelConfigError(
            "The configuration names a model or provider, but that part of it is not valid.",
            hint="Correct the reported problems in agents.defaults.model and models.providers.",
        )


def _first_configured(settings: Settings) -> ModelRef:
    for name, provider in settings.models.providers.items():
        if provider.models:
            return _build(settings, name, provider.models[0].id)
    name = next(iter(settings.models.providers))
    return _build(settings, name, None)


def _bare(settings: Settings, model_id: str) -> ModelRef:
    owners = [
        name
        for name, provider in settings.models.providers.items()
        if any(model.id == model_id for model in provider.models)
    ]
    if len(owners) == 1:
        return _build(settings, owners[0], model_id)
    reason = "several providers list it" if owners else "no provider lists it"
    raise ModelConfigError(
        f"The model {model_id!r} does not say its provider, and {reason}.",
        hint="Write agents.defaults.model.primary as provider/model.",
    )


def _unalias(settings: Settings, name: str) -> str:
    for full, entry in settings.agents.defaults.models.items():
        if entry.alias is not None and entry.alias.lower() == name.lower():
            return full
    return name


def _build(settings: Settings, provider_name: str, model_id: str | None) -> ModelRef:
    name, configured = _provider_settings(settings, provider_name)
    service = known(name)
    if configured is None and service is None:
        raise ModelConfigError(
            f"The provider {provider_name} is not configured and not one that is known by name.",
            hint=f"Add models.providers.{provider_name} with baseUrl and apiKey.",
        )
    if configured is not None and configured.unusable:
        raise ModelConfigError(
            f"The provider {name} cannot be used: {configured.unusable}.",
            hint=f"Set what models.providers.{name} refers to.",
        )
    model_id = model_id or _default_id(settings.env, name, service)
    entry = _entry(configured, model_id)
    api = (
        (entry.api if entry else None)
        or (configured.api if configured else None)
        or (OPENAI_COMPLETIONS if configured and configured.base_url else None)
        or (service.api if service else OPENAI_COMPLETIONS)
    )
    if api != OPENAI_COMPLETIONS:
        raise unspoken_api(name, api)
    base_url = _base_url(settings.env, name, configured, service)
    headers = {**(configured.headers if configured else {}), **(entry.headers if entry else {})}
    for header, value in headers.items():
        place = f"models.providers.{name}.headers.{header}"
        _refuse_reference(value, place)
        _refuse_unsendable(value, "header", place)
    return ModelRef(
        provider=name,
        id=model_id,
        api=api,
        base_url=base_url,
        api_key=_api_key(settings.env, name, configured, service, headers),
        context_window=_window(settings, entry, service, model_id),
        max_tokens=entry.max_tokens if entry else None,
        reasoning=entry.reasoning if entry else _reasons(service, model_id),
        headers=headers,
        cost=entry.cost.prices() if entry and entry.cost else None,
    )


def _provider_settings(settings: Settings, name: str) -> tuple[str, ProviderSettings | None]:
    """The provider as configured (exact name first, then under an alias), else its known name."""
    providers = settings.models.providers
    if name in providers:
        return name, providers[name]
    for configured, value in providers.items():
        if canonical(configured) == canonical(name):
            return configured, value
    return canonical(name), None


def _default_id(env: Mapping[str, str], name: str, service: Provider | None) -> str:
    if service is not None:
        chosen = first_set(env, service.model_vars)
        if chosen is not None:
            return chosen
        elsewhere = first_set(env, service.url_vars) is not None
        if service.default_model is not None and not elsewhere:
            return service.default_model
    variable = service.model_vars[0] if service and service.model_vars else MODEL_VARIABLE
    raise ModelConfigError(
        f"The provider {name} is set up, but no model is named.",
        hint=f"Set {variable}, or agents.defaults.model.primary to {name}/MODEL.",
    )


def _entry(configured: ProviderSettings | None, model_id: str) -> ProviderModel | None:
    models = configured.models if configured else ()
    return next((model for model in models if model.id == model_id), None)


def _base_url(
    env: Mapping[str, str],
    name: str,
    configured: ProviderSettings | None,
    service: Provider | None,
) -> str:
    place = f"models.providers.{name}.baseUrl"
    url = configured.base_url if configured else None
    if not url and service is not None:
        url = first_set(env, service.url_vars) or service.base_url
    if not url:
        raise ModelConfigError(f"The provider {name} has no base URL.", hint=f"Set {place}.")
    _refuse_reference(url, place)
    try:
        full = normal_base_url(url, service)
    except ValueError:
        full = url
    require_web_address(full, name)
    return full


def _api_key(
    env: Mapping[str, str],
    name: str,
    configured: ProviderSettings | None,
    service: Provider | None,
    headers: Mapping[str, str],
) -> str | None:
    """The key: from the configuration (a text, or the name of a variable), else the environment."""
    key = (configured.api_key or "").strip() if configured else ""
    if key:
        _refuse_reference(key, f"models.providers.{name}.apiKey")
        if _VARIABLE_NAME.match(key):
            named = env.get(key, "").strip()
            if not named:
                raise ModelConfigError(
                    f"The API key of {name} names the variable {key}, which is not set.",
                    hint=f"Set {key}, or write the key in models.providers.{name}.apiKey.",
                )
            _refuse_unsendable(named, "API key", f"the variable {key}")
            return named
        _refuse_unsendable(key, "API key", f"models.providers.{name}.apiKey")
        return key
    found = first_set(env, service.key_vars) if service else None
    if found is not None and service is not None:
        variable = next(var for var in service.key_vars if env.get(var, "").strip())
        _refuse_unsendable(found, "API key", f"the variable {variable}")
    own_address = bool(configured and configured.base_url) or (
        service is not None and first_set(env, service.url_vars) is not None
    )
    authorised = found is not None or any(h.lower() == "authorization" for h in headers)
    if service is not None and service.needs_key and not own_address and not authorised:
        raise ModelConfigError(
            f"The provider {name} needs an API key.",
            hint=f"Set {service.key_vars[0]}, or models.providers.{name}.apiKey.",
        )
    return found


def _refuse_reference(value: str, place: str) -> None:
    if found := _REFERENCE.search(value):
        raise ModelConfigError(
            f"{place} holds the variable {found[0]}, which is not set.",
            hint=f"Set the variable, or write the value in {place}.",
        )


def _refuse_unsendable(value: str, what: str, place: str) -> None:
    """HTTP carries visible ASCII only; the value itself is never repeated."""
    odd = next((i for i, c in enumerate(value, 1) if not " " <= c <= "~"), 0)
    if odd:
        raise ModelConfigError(
            f"The {what} in {place} holds a character that HTTP cannot carry (character {odd}).",
            hint="Copy it again: only plain letters, digits and signs belong there.",
        )


def _window(
    settings: Settings, entry: ProviderModel | None, service: Provider | None, model_id: str
) -> int:
    """Tokens; `agents.defaults.contextTokens` can only make the window smaller."""
    if entry is not None:
        window = entry.context_window
    else:
        window = ((service.context_windows if service else None) or {}).get(model_id, 200_000)
    cap = settings.agents.defaults.context_tokens
    return min(window, cap) if cap else window


def _reasons(service: Provider | None, model_id: str) -> bool:
    return service is not None and model_id.startswith(service.reasoning_models or ("\0",))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
