"""Clients of a server of online tables: `Client`, which waits, and `AsyncClient`, which is awaited."""

from headwater.serving.client.async_client import AsyncClient
from headwater.serving.client.client import Client

__all__ = ["AsyncClient", "Client"]
