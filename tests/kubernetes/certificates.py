"""Keys and certificates of one control plane: for the authority, the servers, and service account tokens."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
          "kubernetes.default.svc.cluster.local")  # fmt: skip
_ADDRESSES = ("127.0.0.1", "10.96.0.1")  # the listening address, and the first service address
_VALID_DAYS = 2
_AUTHORITY = "hekla-test-ca"
_USES = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
         "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")  # fmt: skip


@dataclass(frozen=True)
class Certificates:
    """PEM files in `folder`."""

    folder: Path

    @property
    def ca(self) -> Path:
        """The certificate of the authority, which clients must trust."""
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        """The certificate of all servers."""
        return self.folder / "serving.pem"

    @property
    def key(self) -> Path:
        """The key of `certificate`."""
        return self.folder / "serving.key"

    @property
    def service_account_key(self) -> Path:
        """The key that signs and verifies service account tokens."""
        return self.folder / "service-accounts.key"

    @property
    def _ca_key(self) -> Path:
        return self.folder / "ca.key"

    def client(self, user: str, group: str) -> tuple[str, str]:
        """A client certificate and its key, for this user and group."""
        key, ca_key = ec.generate_private_key(ec.SECP256R1()), _private_key(self._ca_key)
        signed = _with_key_identifiers(_client(user, group, key), key, ca_key).sign(ca_key, hashes.SHA256())
        return _pem(signed).decode(), _private_pem(key).decode()

    def make(self) -> None:
        """Create all keys and certificates."""
        self.folder.mkdir(mode=0o700)
        ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        ca = _with_key_identifiers(_authority(ca_key), ca_key, ca_key)
        self.ca.write_bytes(_pem(ca.sign(ca_key, hashes.SHA256())))
        self._ca_key.write_bytes(_private_pem(ca_key))
        serving = _with_key_identifiers(_serving(key), key, ca_key)
        self.certificate.write_bytes(_pem(serving.sign(ca_key, hashes.SHA256())))
        self.key.write_bytes(_private_pem(key))
        self.service_account_key.write_bytes(_private_pem(rsa.generate_private_key(65537, 2048)))


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    usages = dict.fromkeys(_USES, False) | {"key_cert_sign": True, "crl_sign": True}
    return (
        _builder(_AUTHORITY, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**usages), critical=True)
    )


def _serving(key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in _NAMES]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in _ADDRESSES]
    return (
        _builder("kube-apiserver", key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )


def _client(user: str, group: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return _builder(user, key, group).add_extension(uses, critical=False)


def _builder(subject: str, key: ec.EllipticCurvePrivateKey, group: str = "") -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject, group))
        .issuer_name(_name(_AUTHORITY))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_VALID_DAYS))
    )


def _with_key_identifiers(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, issuer: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    """Add key identifiers: newer versions of OpenSSL refuse certificates without them."""
    return builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    ).add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()), critical=False)


def _name(common: str, group: str = "") -> x509.Name:
    organization = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common), *organization])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_key(file: Path) -> ec.EllipticCurvePrivateKey:
    found = serialization.load_pem_private_key(file.read_bytes(), None)
    assert isinstance(found, ec.EllipticCurvePrivateKey)
    return found


def _private_pem(key: PrivateKeyTypes) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
