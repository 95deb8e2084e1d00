import type { X509Certificate } from 'node:crypto'
import { type Certificate, type DetailedPeerCertificate, type PeerCertificate, TLSSocket } from 'node:tls'

const { getPeerCertificate: ofNode } = TLSSocket.prototype

/**
 * Makes the certificate of a peer safe to read, for every TLS connection of the process. Node 24.21 and 26.10 crash (SIGSEGV) where they
 * turn a certificate into an object whose key is on an EC curve without a NIST name, such as brainpoolP256r1 or secp256k1. Node does so
 * with all that the peer has shown, after each verified handshake. `X509Certificate` does not crash, so `getPeerCertificate` answers
 * from it. It is replaced in the class, because `@redis/client` and Node's agents hand out no socket before its handshake. Each module that opens
 * TLS connections calls this first.
 */
export function readPeersSafely(): void {
  TLSSocket.prototype.getPeerCertificate = function () {
    const shown = this.getPeerX509Certificate()
    // Without a certificate Node's is empty, or null, although its type says otherwise.
    return shown === undefined ? (ofNode.call(this) as DetailedPeerCertificate) : describe(shown)
  }
}

/** The object that Node makes, without further fields about the key, OCSP and the extended key usage. */
function describe(shown: X509Certificate): DetailedPeerCertificate {
  return {
    raw: shown.raw,
    ca: shown.ca,
    subject: namesIn(shown.subject),
    issuer: namesIn(shown.issuer),
    ...(shown.subjectAltName === undefined ? {} : { subjectaltname: shown.subjectAltName }),
    valid_from: shown.validFrom,
    valid_to: shown.validTo,
    serialNumber: shown.serialNumber,
    fingerprint: shown.fingerprint,
    fingerprint256: shown.fingerprint256,
    fingerprint512: shown.fingerprint512,
    ...keyIn(shown),
    /** The last certificate of a chain names itself, as in Node. */
    get issuerCertificate() {
      return shown.issuerCertificate === undefined ? this : describe(shown.issuerCertificate)
    },
  }
}

/** The length of a key, or its curve. Empty for a key that OpenSSL does not know. */
function keyIn(shown: X509Certificate): Pick<PeerCertificate, 'bits' | 'asn1Curve'> {
  try {
    const { modulusLength, namedCurve } = shown.publicKey.asymmetricKeyDetails ?? {}
    return {
      ...(modulusLength === undefined ? {} : { bits: modulusLength }),
      ...(namedCurve === undefined ? {} : { asn1Curve: namedCurve }),
    }
  } catch {
    return {}
  }
}

/**
 * The attributes of a distinguished name. OpenSSL writes one a line, several of one RDN with ` + ` between them, and escapes line feeds
 * and plus signs within a value, so no value can pass for another attribute. An empty name is undefined, whatever its type says.
 */
function namesIn(text: string | undefined): Certificate {
  if (text === undefined) return {}
  const pairs = text.split(/\n| \+ /).map((pair) => pair.split(/=(.*)/s))
  const grouped = Object.groupBy(pairs, ([name = '']) => name)
  const values = Object.entries(grouped).map(([name, same = []]) => {
    const all = same.map(([, value = '']) => unescaped(value))
    const [first] = all
    return [name, all.length === 1 ? first : all]
  })
  return Object.fromEntries(values)
}

function unescaped(value: string): string {
  return value.replaceAll(/\\([\dA-F]{2}|.)/gs, (_, code: string) =>
    code.length === 2 ? String.fromCharCode(Number.parseInt(code, 16)) : code,
  )
}
