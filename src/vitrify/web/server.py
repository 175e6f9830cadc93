"""Serving the app: where it listens, and who may come in."""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import replace

from vitrify.errors import InputError
from vitrify.web.site import Settings

CONNECTIONS = 256  # at once; those that come then are told so


def loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guarded(settings: Settings) -> Settings:
    """The settings with a token where other machines can ask."""
    if settings.token is not None and len(settings.token) < 8:
        raise InputError("a token must have at least 8 characters: others could guess it")
    if settings.token is None and not loopback(settings.host):
        return replace(settings, token=secrets.token_urlsafe(24))
    return settings


def address(settings: Settings) -> str:
    """What to open in a browser."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}/" + (f"?token={settings.token}" if settings.token else "")


def serve(settings: Settings) -> None:
    """Serve the app until it is interrupted."""
    import uvicorn

    from vitrify.web.app import application

    uvicorn.run(
        application(settings),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=2,
    )
