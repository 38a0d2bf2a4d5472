"""Certificates and keys for a federation: an authority, the server's certificate, and a key pair for every node.

The authority's key signs the server's certificate and is then dropped: its owner could impersonate the server.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fedvote.errors import ConfigError

DAYS = 365
HERE = ("localhost", "127.0.0.1")  # by these, Flower's own programs on the server reach the SuperLink, over TLS too
MOST_DAYS = 36_500
HOST = re.compile(r"(?=.{1,253}$)(?!-)[A-Za-z0-9-]{1,63}(\.(?!-)[A-Za-z0-9-]{1,63})*")


@dataclass(frozen=True)
class Certificates:
    """The files of an authority and of a server."""

    authority: Path  # the authority's certificate, for everybody: it verifies the server's
    server: Path  # the server's certificate
    key: Path  # the server's private key


def certificates_in(folder: Path) -> Certificates:
    """The files that `make_certificates` writes into a folder."""
    return Certificates(folder / "ca.crt", folder / "server.pem", folder / "server.key")


def make_certificates(folder: Path, hosts: Sequence[str] = HERE, days: int = DAYS) -> Certificates:
    """Make an authority, and a certificate for a server that clients reach by these names or addresses."""
    if not hosts or not all(map(_is_host, hosts)) or not 1 <= days <= MOST_DAYS:
        raise ConfigError(
            f"hosts are {', '.join(map(repr, hosts)) or 'none'} and days {days}, expected names or addresses by which "
            f"clients reach the server, and 1 to {MOST_DAYS} days"
        )
    files = certificates_in(folder)
    _new(files.authority, files.server, files.key)
    now = datetime.datetime.now(datetime.UTC)
    authority_key, server_key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    authority, server = _name("fedvote authority"), _name("fedvote server")  # clients check the hosts, not this name
    until = now + datetime.timedelta(days=days)

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        blank = x509.CertificateBuilder().subject_name(subject).issuer_name(authority).public_key(key.public_key())
        dated = blank.not_valid_before(now - datetime.timedelta(minutes=5)).not_valid_after(until)
        identified = dated.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return identified.serial_number(x509.random_serial_number())

    signs = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    root = builder(authority, authority_key).add_extension(x509.BasicConstraints(True, 0), critical=True)
    root = root.add_extension(signs, critical=True)
    names = [_host(host) for host in dict.fromkeys([*hosts, *HERE])]
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    leaf = builder(server, server_key).add_extension(x509.BasicConstraints(False, None), critical=True)
    leaf = leaf.add_extension(x509.SubjectAlternativeName(names), critical=False)
    leaf = leaf.add_extension(signer, critical=False)
    for path, certificate in ((files.authority, root), (files.server, leaf)):
        path.write_bytes(certificate.sign(authority_key, hashes.SHA384()).public_bytes(serialization.Encoding.PEM))
    _secret(files.key, _private(server_key, serialization.PrivateFormat.PKCS8))
    return files


def make_key(path: Path) -> Path:
    """Make a node's key pair, PATH and PATH.pub, as ssh-keygen writes them; returns the public file."""
    public = path.with_name(path.name + ".pub")
    _new(path, public)
    key = ec.generate_private_key(ec.SECP384R1())
    _secret(path, _private(key, serialization.PrivateFormat.OpenSSH))
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    public.write_bytes(key.public_key().public_bytes(*form) + b"\n")
    return public


def _new(*paths: Path) -> None:
    """Make the folder of these files; ConfigError if one of them exists."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    for path in paths:
        if path.exists():
            raise ConfigError(f"{path} exists already: delete it, or choose another path")


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _is_host(host: str) -> bool:
    """Whether a text is an address, or a name such as fed.example.org, without port and https://."""
    with suppress(ValueError):
        return bool(ipaddress.ip_address(host).version)
    return HOST.fullmatch(host) is not None


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private(key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read; its mode is set before its first byte."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
