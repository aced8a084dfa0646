"""The certificate authority of a fabric that speaks TLS.

Its key is used once and forgotten: no further certificate can be signed by it.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from knotless.emulation.certificates import ADDRESS, Certificates, paths

VALID_DAYS = 365


def create(directory: Path) -> Certificates:
    """Write a new CA and both pairs into a new ``directory``; keys are readable by us only."""
    directory.mkdir(mode=0o700)
    certificates = paths(directory)
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _sign("Knotless CA", key.public_key(), None, key, None)
    _write(certificates.authority, authority.public_bytes(serialization.Encoding.PEM))
    for name, pair, usage in (
        ("Knotless controller", certificates.controller, ExtendedKeyUsageOID.SERVER_AUTH),
        ("Knotless switches", certificates.switches, ExtendedKeyUsageOID.CLIENT_AUTH),
    ):
        own = ec.generate_private_key(ec.SECP256R1())
        signed = _sign(name, own.public_key(), usage, key, authority.subject)
        _write(pair.certificate, signed.public_bytes(serialization.Encoding.PEM))
        text = own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        _write(pair.key, text)
    return certificates


def _sign(
    name: str,
    public: ec.EllipticCurvePublicKey,
    usage: x509.ObjectIdentifier | None,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name | None,
) -> x509.Certificate:
    """Return a certificate; without ``issuer`` that of the CA itself."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(_usage_of_key(signs=issuer is None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
    )
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    if usage == ExtendedKeyUsageOID.SERVER_AUTH:
        addresses = [x509.IPAddress(ipaddress.ip_address(ADDRESS))]
        builder = builder.add_extension(x509.SubjectAlternativeName(addresses), critical=False)
    return builder.sign(key, hashes.SHA256())


def _usage_of_key(*, signs: bool) -> x509.KeyUsage:
    """Return what a key is for: the CA's signs certificates, the others sign handshakes."""
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write(path: Path, text: bytes) -> None:
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)
