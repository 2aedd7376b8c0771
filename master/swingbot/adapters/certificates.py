"""A certificate authority for one lab, and the Buildbot master's certificate signed by it (X.509,
using the library `cryptography`).
"""

from __future__ import annotations

import datetime
import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from swingbot.adapters import private_file

CA_DAYS: Final = 3650
LOCAL: Final = ("localhost", "127.0.0.1")  # workers on the master's own host
# workers with a slow clock accept the certificate too
_SKEW: Final = datetime.timedelta(hours=1)


class CertificateError(Exception):
    """A certificate cannot be created; the message gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """The files that were written; `ca_key` is only needed for further certificates and may be
    moved elsewhere.
    """

    ca: Path
    ca_key: Path
    certificate: Path
    key: Path


def make(out: Path, names: Sequence[str], days: int) -> CertificateFiles:
    """Create a certificate for `names` (DNS names or IP addresses), valid for `days`, signed by the
    CA in `out`, which is created if needed.

    Raises CertificateError or OSError.
    """
    files = CertificateFiles(
        ca=out / "ca.pem",
        ca_key=out / "ca.key",
        certificate=out / "master.pem",
        key=out / "master.key",
    )
    alternatives = [_alternative(name) for name in dict.fromkeys((*names, *LOCAL))]
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    ca, ca_key = _authority(files)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name("swingbot master"), ca.subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    private_file.write(files.key, _pem_of_key(key), 0o600)
    private_file.write(
        files.certificate,
        certificate.public_bytes(serialization.Encoding.PEM)
        + ca.public_bytes(serialization.Encoding.PEM),
        0o644,
    )
    return files


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        return x509.DNSName(name.encode("idna").decode("ascii"))
    except (UnicodeError, ValueError):
        raise CertificateError(f"--name {name}: not a host name or IP address") from None


def _authority(files: CertificateFiles) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Load the CA from the directory, or create a new one."""
    if files.ca.exists() != files.ca_key.exists():
        missing = files.ca if files.ca_key.exists() else files.ca_key
        raise CertificateError(
            f"{missing} is missing, although the other file of the CA exists; restore it, or "
            "give an empty directory for a new CA"
        )
    if not files.ca.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(f"swingbot lab {secrets.token_hex(4)}")
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
            key_encipherment=False, data_encipherment=False, key_agreement=False,
            encipher_only=False, decipher_only=False,
        )  # fmt: skip
        certificate = (
            _builder(name, name, key.public_key(), CA_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        private_file.write(files.ca_key, _pem_of_key(key), 0o600)
        private_file.write(files.ca, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    try:
        loaded = serialization.load_pem_private_key(files.ca_key.read_bytes(), None)
        ca = x509.load_pem_x509_certificate(files.ca.read_bytes())
    except (ValueError, TypeError) as error:
        raise CertificateError(
            f"{files.ca} or {files.ca_key} is not a valid PEM file of a CA: {error}"
        ) from None
    if not isinstance(loaded, ec.EllipticCurvePrivateKey) or loaded.public_key() != ca.public_key():
        raise CertificateError(
            f"{files.ca_key} is not the key of {files.ca}; give an empty directory for a new CA"
        )
    return ca, loaded


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _pem_of_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
