"""Certificates that a TLS client accepts for the hosts named, and for no other; keys that nobody else can read."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from fedvote.engines.flower.certificates import Certificates, make_certificates, make_key
from fedvote.errors import ConfigError


def shake_hands(made: Certificates, authority: Path, host: str) -> None:
    """One TLS connection to a server with this certificate, by a client that trusts this authority."""
    server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context(cafile=authority)
    server.load_cert_chain(made.server, made.key)
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            server.wrap_socket(theirs, server_side=True).close()
        except (ssl.SSLError, OSError):
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        client.wrap_socket(ours, server_hostname=host).close()
    finally:
        ours.close()
        thread.join()


def test_a_client_that_trusts_the_authority_accepts_the_server_by_its_names(tmp_path: Path) -> None:
    made = make_certificates(tmp_path, ["fed.example.org", "127.0.0.1"])
    shake_hands(made, made.authority, "fed.example.org")
    shake_hands(made, made.authority, "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        shake_hands(made, made.authority, "other.example.org")


def test_the_servers_own_programs_accept_it_whatever_clients_call_the_server(tmp_path: Path) -> None:
    made = make_certificates(tmp_path, ["fed.example.org"])
    for host in ("127.0.0.1", "localhost", "fed.example.org"):
        shake_hands(made, made.authority, host)


def test_long_names_are_hosts_and_what_is_more_than_a_name_is_none(tmp_path: Path) -> None:
    long = "internal-fedvote-load-balancer-1234567890.eu-central-1.elb.amazonaws.example.org"
    shake_hands(made := make_certificates(tmp_path / "long", [long]), made.authority, long)
    for wrong in ("https://fed.example.org", "fed.example.org:8000", "m\u00fcnchen.example", "-a.org", "a" * 64):
        with pytest.raises(ConfigError, match="expected names or addresses by which clients reach the server"):
            make_certificates(tmp_path / "wrong", [wrong])
    assert not (tmp_path / "wrong").exists()


def test_a_client_that_trusts_another_authority_refuses_it(tmp_path: Path) -> None:
    made, other = make_certificates(tmp_path / "a"), make_certificates(tmp_path / "b")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(made, other.authority, "localhost")


def test_private_keys_are_for_the_owner_alone_and_fit_the_public_ones(tmp_path: Path) -> None:
    made, public = make_certificates(tmp_path), make_key(tmp_path / "node")
    for path in (made.key, tmp_path / "node"):
        assert path.stat().st_mode & 0o077 == 0
    private = load_ssh_private_key((tmp_path / "node").read_bytes(), None)
    assert private.public_key() == load_ssh_public_key(public.read_bytes())
    assert not list(tmp_path.glob("ca.key"))


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    before = (tmp_path / "ca.crt").read_bytes()
    with pytest.raises(ConfigError, match="exists already"):
        make_certificates(tmp_path)
    assert (tmp_path / "ca.crt").read_bytes() == before
