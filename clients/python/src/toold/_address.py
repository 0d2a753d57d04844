"""Where the daemon is, and the connection to it."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os

import grpc
import grpc.aio

from ._errors import TooldError

_WINDOWS = [("grpc.http2.bdp_probe", 0), ("grpc.max_receive_message_length", 16 << 20)]


async def open_channel(address):
    """Opens a connection to the daemon at an address, or without one at that of this user, which is started."""
    address, metadata = await _address_of(address)
    interceptors = [kind(metadata) for kind in (_UnaryUnary, _UnaryStream, _StreamStream)] if metadata else None
    if metadata and not _is_loopback(address):
        return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(), options=_WINDOWS, interceptors=interceptors)
    return grpc.aio.insecure_channel(address, options=_WINDOWS, interceptors=interceptors)


class _Token:
    """Shows the token with each request. An interceptor is asked for one kind of methods only, whatever else it can."""

    def __init__(self, metadata):
        self._metadata = metadata

    async def _show(self, proceed, details, request):
        return await proceed(details._replace(metadata=grpc.aio.Metadata(*(tuple(details.metadata or ()) + self._metadata))), request)


class _UnaryUnary(_Token, grpc.aio.UnaryUnaryClientInterceptor):
    intercept_unary_unary = _Token._show


class _UnaryStream(_Token, grpc.aio.UnaryStreamClientInterceptor):
    intercept_unary_stream = _Token._show


class _StreamStream(_Token, grpc.aio.StreamStreamClientInterceptor):
    intercept_stream_stream = _Token._show


async def _address_of(address):
    """Returns where the daemon is, and the metadata that each request shows; it is started if it is on this machine."""
    address = address or os.environ.get("TOOLD_ADDRESS", "")
    if address.startswith("tcp://"):
        metadata = ()
        if file := os.environ.get("TOOLD_TOKEN_FILE"):
            metadata = (("authorization", "Bearer " + _token_in(file)),)
        return address[len("tcp://") :], metadata
    if address.startswith("unix:"):
        return address, ()
    if address:
        raise TooldError("INVALID_ARGUMENT", "", f'the address of a daemon is "unix:/path" or "tcp://host:port", not {address!r}')
    try:
        process = await asyncio.create_subprocess_exec("toold", "start", "--json", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    except FileNotFoundError:
        raise TooldError("UNAVAILABLE", "", "toold is not installed, or not on PATH") from None
    out, err = await process.communicate()
    if process.returncode:
        raise TooldError("UNAVAILABLE", "", err.decode(errors="replace").strip())
    return next(x["address"] for x in json.loads(out)["listeners"] if x["address"].startswith("unix:")), ()


def _is_loopback(address):
    host = address.rsplit(":", 1)[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token_in(file):
    """The token of a file: its only word, or the last word of its first line that is not a comment. Nobody else may read the file."""
    if os.stat(file).st_mode & 0o077:
        raise TooldError("INVALID_ARGUMENT", "", f"the token file {file} is open to others: run chmod 600 {file}")
    with open(file, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                return line.split()[-1]
    raise TooldError("INVALID_ARGUMENT", "", f"the token file {file} has no token")
