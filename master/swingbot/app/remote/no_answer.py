"""What it means that a service elsewhere gave no answer, and what to do about it."""

from __future__ import annotations

import http.client
import os
import ssl
import time
import urllib.request
from typing import Final
from urllib.parse import urljoin, urlsplit

from swingbot.app.documents import ServiceAway
from swingbot.app.remote.login import NoLogin, is_here, url_of

# of OpenSSL's X509_V_ERR_*
_CLOCK: Final = (9, 10)  # not yet valid, expired
_NAME: Final = (62, 64)  # another host name, another address


class ServiceError(OSError):
    """The service cannot be reached, or what answers is not a service of this version."""


class LostAnswer(ServiceAway):
    """A request may have been carried out, but no answer came."""


def stranger(url: str, status: int) -> ServiceError:
    """Return the error for an answer that is not of a service."""
    return ServiceError(
        f"{url} is not a swingbot service: something else answers there with status {status}, such"
        " as a proxy or the sign-in page of a network"
    )


def redirected(url: str, asked: str, location: str) -> ServiceError:
    """Return the error for a redirect, which is not followed; `asked`: the address below `url`."""
    try:
        target = urljoin(url + asked, location)
        origin = url_of("://".join(urlsplit(target)[:2]))
        found = url_of(target.removesuffix(asked)) if target.endswith(asked) else origin
    except (ValueError, NoLogin):
        return ServiceError(f"{url} redirects to an invalid address; the token was not sent there")
    if urlsplit(origin)[:2] == urlsplit(url)[:2]:
        return ServiceError(
            f"{url} redirects to another page, which a swingbot service does not do: something else"
            " answers there, such as a proxy that asks to sign in; the token was not sent there"
        )
    return ServiceError(
        f"{url} redirects to {origin}; the token was not sent there. It may be the sign-in page of"
        f" a network. If it is the service, run `swingbot login {found}`"
    )


def too_large(size: int) -> str:
    return (
        f"a request of {size >> 10} KiB is too large: patches and commits may have"
        " web.patch_kib together (1024 KiB unless its operator sets it)"
    )


def was_cut(error: Exception) -> bool:
    """Return whether the other end closed the connection."""
    reason = _reason(error)
    cut = isinstance(reason, ConnectionError | ssl.SSLEOFError)
    return cut and not isinstance(reason, ConnectionRefusedError)


def failure(url: str, error: Exception, seconds: float) -> ServiceError | ServiceAway:
    """Return the error that a connection without an answer means."""
    reason = _reason(error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        why = reason.verify_message.rstrip(".")
        advice = _advice(reason.verify_code)
        return ServiceError(f"the certificate of {url} is not trusted: {why}. {advice}")
    if isinstance(reason, TimeoutError):
        return LostAnswer(f"{url} does not answer within {seconds:.0f} s")
    lost = was_cut(error) or isinstance(reason, http.client.HTTPException)
    words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    if isinstance(reason, ssl.SSLError):
        words = f"TLS fails ({reason.reason or words}); does its address begin with http://?"
    elif isinstance(reason, http.client.HTTPException) and not was_cut(error):
        words = "something else than HTTP answers there"
    return (LostAnswer if lost else ServiceAway)(f"{url} cannot be reached{_proxy(url)}: {words}")


def _reason(error: Exception) -> object:
    # that of an SSLError is a word
    return error if isinstance(error, ssl.SSLError) else getattr(error, "reason", error)


def _advice(code: int) -> str:
    if code in _CLOCK:
        now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
        return f"Check the clock of this machine: it says {now} UTC"
    if code in _NAME:
        return "Use the name that the certificate has"
    if not (file := os.environ.get("SSL_CERT_FILE")):
        return "For a certificate of your lab set SSL_CERT_FILE to its authority"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
    except ssl.SSLError:
        return f"SSL_CERT_FILE names {file}, which has no certificate"
    except OSError as error:
        return f"SSL_CERT_FILE names {file}: {error.strerror}"
    return f"SSL_CERT_FILE names {file}, which does not have its authority"


def _proxy(url: str) -> str:
    """Return the words that name the proxy on the way to `url`, without its password."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if not proxy or is_here(url) or urllib.request.proxy_bypass(parts.netloc):
        return ""
    place = urlsplit(proxy if "//" in proxy else f"//{proxy}").netloc
    return f" through the proxy {place.rpartition('@')[2]}"
