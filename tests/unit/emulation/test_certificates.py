"""The certificates of a fabric that speaks TLS."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509

from knotless.emulation import certificate_authority


def test_keys_are_ours_alone_and_the_cas_is_not_kept(tmp_path: Path) -> None:
    certificate_authority.create(tmp_path / "tls")
    names = {path.name for path in (tmp_path / "tls").iterdir()}
    assert names == {
        *("ca.pem", "controller-key.pem", "controller-cert.pem"),
        *("switches-key.pem", "switches-cert.pem"),
    }
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "tls").iterdir())


def test_the_ca_has_signed_both(tmp_path: Path) -> None:
    certificates = certificate_authority.create(tmp_path / "tls")
    authority = x509.load_pem_x509_certificate(certificates.authority.read_bytes())
    for pair in (certificates.controller, certificates.switches):
        own = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
        own.verify_directly_issued_by(authority)
        assert not own.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_existing_certificates_are_not_overwritten(tmp_path: Path) -> None:
    certificate_authority.create(tmp_path / "tls")
    with pytest.raises(FileExistsError):
        certificate_authority.create(tmp_path / "tls")
