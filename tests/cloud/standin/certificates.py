"""A certificate authority that nobody trusts but who is told to, a certificate of it, and a service account's key."""

from __future__ import annotations

import datetime
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_PEM = serialization.Encoding.PEM
_PLAIN = serialization.NoEncryption()
_LIFE = datetime.timedelta(days=2)


@dataclass(frozen=True)
class Certificates:
    """The files.

    Attributes:
        authority: Whom clients are to trust.
        chain: The server's certificate.
        key: The server's key.
    """

    authority: Path
    chain: Path
    key: Path


def make_certificates(folder: Path, hosts: Sequence[str]) -> Certificates:
    """Make an authority and a server's certificate.

    Args:
        folder: Where the files go.
        hosts: Names that it is for, such as `*.googleapis.com`, beside localhost and 127.0.0.1.
    """
    files = Certificates(folder / "authority.pem", folder / "server.pem", folder / "server-key.pem")
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a stand-in's authority")])
    now = datetime.datetime.now(datetime.timezone.utc)
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(_usage(signs=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in ("localhost", *hosts)]
    names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a stand-in")])
    server = (
        _builder(server_name, authority_name, server_key.public_key(), now)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    files.authority.write_bytes(authority.public_bytes(_PEM))
    files.chain.write_bytes(server.public_bytes(_PEM))
    files.key.write_bytes(server_key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, _PLAIN))
    files.key.chmod(0o600)
    return files


def write_account(file: Path, project: str, token_uri: str) -> Path:
    """Write the key file of a service account that only the stand-in knows.

    Args:
        file: Where to.
        project: The project's id.
        token_uri: Where its tokens come from.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    content = {
        "type": "service_account",
        "project_id": project,
        "private_key_id": "stand-in",
        "private_key": key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, _PLAIN).decode(),
        "client_email": f"tester@{project}.iam.gserviceaccount.com",
        "client_id": "100000000000000000001",
        "token_uri": token_uri,
    }
    file.write_text(json.dumps(content))
    file.chmod(0o600)
    return file


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFE)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
