"""TLS for the port: the operator's certificate, or one made here. Not for the loop."""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import ssl
from pathlib import Path

from claw_engine.config.sections.gateway import Tls
from claw_engine.gateway.web.bind import PortError

VALID_DAYS = 825
"""What clients still accept of a certificate."""
RENEW_DAYS = 30


def context(tls: Tls, folder: Path) -> ssl.SSLContext:
    """A server context; makes a self-signed pair in `folder` if that is asked for.

    Raises PortError.
    """
    certificate, key = _pair(tls, folder)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        made.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise PortError(
            f"The certificate {certificate} with the key {key} cannot be used: {error}.",
            hint="Mend gateway.tls.certPath and gateway.tls.keyPath.",
        ) from error
    return made


def fingerprint(certificate: Path) -> str:
    """SHA-256 of the certificate, hex: what a client pins."""
    import hashlib  # with TLS only

    pem = certificate.read_text().split("-----END CERTIFICATE-----")[0]
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem + "-----END CERTIFICATE-----")).hexdigest()


def _pair(tls: Tls, folder: Path) -> tuple[Path, Path]:
    if tls.cert_path and tls.key_path:
        return Path(tls.cert_path).expanduser(), Path(tls.key_path).expanduser()
    if tls.cert_path or tls.key_path or not tls.auto_generate:
        raise PortError(
            "gateway.tls needs both certPath and keyPath.",
            hint="Name both, or set gateway.tls.autoGenerate.",
        )
    certificate, key = folder / "cert.pem", folder / "key.pem"
    if not _fresh(certificate, key):
        _make(certificate, key)
    return certificate, key


def _fresh(certificate: Path, key: Path) -> bool:
    from cryptography import x509  # with TLS only

    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError):
        return False
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=RENEW_DAYS)
    return key.exists() and found.not_valid_after_utc > soon


def _make(certificate: Path, key: Path) -> None:
    # With TLS only.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    secret = ec.generate_private_key(ec.SECP256R1())
    host = socket.gethostname()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.DNSName(host)]
    names += [x509.IPAddress(ipaddress.ip_address(ip)) for ip in ("127.0.0.1", "::1")]
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name)
        .public_key(secret.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(secret, hashes.SHA256())
    )  # fmt: skip
    try:
        certificate.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(key, secret.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ))  # fmt: skip
        _write(certificate, made.public_bytes(serialization.Encoding.PEM))
    except OSError as error:
        raise PortError(f"Cannot write {error.filename}: {error.strerror}.") from error


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(".tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(data)
    temporary.replace(path)
