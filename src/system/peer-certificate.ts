import type { X509Certificate } from 'node:crypto'
import { type Certificate, type DetailedPeerCertificate, type PeerCertificate, TLSSocket } from 'node:tls'

const { getPeerCertificate: ofNode } = TLSSocket.prototype

/**
 * Replaces `TLSSocket.getPeerCertificate` for the whole process by a version that does not crash. Node 24.21 and 26.10 crash (SIGSEGV) when
 * they describe a certificate with a key on an EC curve without a NIST name, such as brainpoolP256r1 or secp256k1. Node describes all
 * certificates of the peer after each verified handshake. The replacement reads them from `X509Certificate`, which does not crash. It is
 * set in the class, because `@redis/client` and Node's agents give no access to a socket before its handshake. Each module that opens TLS
 * connections calls this first.
 */
export function readPeersSafely(): void {
  TLSSocket.prototype.getPeerCertificate = function () {
    const shown = this.getPeerX509Certificate()
    // If the peer has no certificate, Node returns an empty object or null, although the type says otherwise.
    return shown === undefined ? (ofNode.call(this) as DetailedPeerCertificate) : describe(shown)
  }
}

/** The object that Node makes, without the further fields about the key, OCSP and the extended key usage. */
function describe(shown: X509Certificate): DetailedPeerCertificate {
  return {
    raw: shown.raw,
    ca: shown.ca,
    subject: attributesIn(shown.subject),
    issuer: attributesIn(shown.issuer),
    ...(shown.subjectAltName === undefined ? {} : { subjectaltname: shown.subjectAltName }),
    valid_from: shown.validFrom,
    valid_to: shown.validTo,
    serialNumber: shown.serialNumber,
    fingerprint: shown.fingerprint,
    fingerprint256: shown.fingerprint256,
    fingerprint512: shown.fingerprint512,
    ...keyIn(shown),
    /** The last certificate of a chain refers to itself, as in Node. */
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
 * The attributes of a distinguished name. OpenSSL writes one RDN per line, joins the attributes of one RDN by ` + `, and escapes line feeds
 * and plus signs within values. So no value can be taken for another attribute. `text` is undefined for an empty name, although Node's
 * types say otherwise.
 */
function attributesIn(text: string | undefined): Certificate {
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
