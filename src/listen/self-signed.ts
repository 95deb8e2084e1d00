import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { addressBytes } from '../http/ip.ts'
import type { TlsMaterial } from './tls-pair.ts'

/** The tags of ASN.1 that certificates use. */
export const DER = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  text: 0x0c,
  utcTime: 0x17,
  time: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const

/** One element in DER (X.690): its tag, its length, its content. */
export function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const length = content.reduce((sum, part) => sum + part.length, 0)
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), ...content])
}

/** A bit string without unused bits, or with so many at its end. */
function derBits(content: Uint8Array, unused = 0): Buffer {
  return der(DER.bits, Buffer.from([unused]), content)
}

/** An object identifier from its dotted form. */
function derOid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return der(DER.oid, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f]
  for (let left = value >> 7; left > 0; left >>= 7) bytes.unshift((left & 0x7f) | 0x80)
  return bytes
}

/** A time in whole seconds: with two digits of the year until 2049 (RFC 5280 §4.1.2.5). */
function derTime(time: Date): Buffer {
  const digits = time.toISOString().replace(/\.\d+|[-:T]/g, '')
  return time.getUTCFullYear() < 2050
    ? der(DER.utcTime, Buffer.from(digits.slice(2)))
    : der(DER.time, Buffer.from(digits))
}

/** The elements of a sequence, each with its tag and length. For DER that OpenSSL has accepted. */
function elementsOf(sequence: Buffer): readonly Buffer[] {
  const elements: Buffer[] = []
  for (let at = contentOf(sequence, 0).start; at < sequence.length; ) {
    const { end } = contentOf(sequence, at)
    elements.push(sequence.subarray(at, end))
    at = end
  }
  return elements
}

function contentOf(bytes: Buffer, at: number): { readonly start: number; readonly end: number } {
  const first = bytes[at + 1] ?? 0
  const digits = first < 0x80 ? 0 : first & 0x7f
  const start = at + 2 + digits
  return { start, end: start + (digits === 0 ? first : bytes.readUIntBE(at + 2, digits)) }
}

/** Ten years, so that an unattended device does not become unreachable because its certificate expires. */
const YEARS = 10

/** Clients whose clock is behind accept the certificate, and so does the sidecar after its own clock is set back. */
const BACKDATED = 86_400_000

const CURVE = 'prime256v1'

/** A certificate file and a key file, both in PEM. */
type Pair = Pick<TlsMaterial, 'cert' | 'key'>

/**
 * The subject must differ from the CA's name. Otherwise subject and issuer are equal and the certificate counts as self-issued
 * (RFC 5280 §6.1).
 */
const SUBJECT = nameOf('Postern server certificate')

/**
 * Makes a key, a CA certificate and a server certificate signed by that CA. Both certificates have the same key and are in one
 * file, so a client that trusts the file accepts every later server certificate of this key. A single self-signed certificate
 * would not do: OpenSSL trusts it only byte for byte (H111), and rustls and Firefox refuse a CA as a server certificate. The CA
 * may sign any name, because later names are unknown (RFC 5280 §4.2.1.10): a client should trust it for this device only.
 * @param wall milliseconds since the Unix epoch
 */
export function makeSelfSigned(host: string, names: readonly string[], wall: number): Pair {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: CURVE })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  // A CN has at most 64 characters (RFC 5280, upper bounds).
  const authority = { name: nameOf(`Postern on ${host}`.slice(0, 64)), period: periodAt(wall) }
  const signer = createSigner(privateKey)
  return { cert: signer.server(authority, names) + signer.authority(authority), key }
}

/**
 * Makes another certificate for other names, with the same key and the same CA. With `renew` the CA certificate is made anew, too,
 * with the same key and name: clients that trust the earlier one go on until it expires.
 * @returns the new certificate file; undefined if Postern did not make the pair
 */
export function remakeSelfSigned(
  { authority, key }: Pick<TlsMaterial, 'authority' | 'key'>,
  names: readonly string[],
  wall: number,
  renew: boolean,
): string | undefined {
  const privateKey = createPrivateKey(key)
  if (authority === undefined || privateKey.asymmetricKeyDetails?.namedCurve !== CURVE) return undefined
  const signer = createSigner(privateKey)
  const present = authorityIn(new X509Certificate(authority))
  if (!renew) return signer.server(present, names) + pemOf(new X509Certificate(authority).raw)
  const { notBefore, notAfter } = present.period
  const next = periodAt(wall)
  // Keeps the earlier start, so that a clock that ran ahead leaves no certificate that is not valid yet.
  const from = notBefore < next.notBefore ? notBefore : next.notBefore
  const until = notAfter > next.notAfter ? notAfter : next.notAfter
  const renewed = { name: present.name, period: { notBefore: from, notAfter: until } }
  return signer.server(renewed, names) + signer.authority(renewed)
}

interface Authority {
  /** In DER. */
  readonly name: Buffer
  readonly period: Period
}

/** The name and the period of a certificate that is its own issuer. */
function authorityIn({ raw, validFromDate, validToDate }: X509Certificate): Authority {
  const [signed = raw] = elementsOf(raw)
  // RFC 5280 §4.1: version, serial number, algorithm, issuer.
  const name = elementsOf(signed)[3] ?? raw
  return { name, period: { notBefore: validFromDate, notAfter: validToDate } }
}

interface Period {
  readonly notBefore: Date
  readonly notAfter: Date
}

function periodAt(wall: number): Period {
  const notAfter = new Date(wall)
  notAfter.setFullYear(notAfter.getFullYear() + YEARS)
  return { notBefore: new Date(wall - BACKDATED), notAfter }
}

/** ecdsa-with-SHA256. */
const SIGNATURE = der(DER.sequence, derOid('1.2.840.10045.4.3.2'))
const VERSION_3 = der(0xa0, der(DER.integer, Buffer.from([2])))
const YES = der(DER.boolean, Buffer.from([0xff]))

/** Makes certificates for one key (RFC 5280), in PEM. The server's is valid as long as the CA. */
function createSigner(privateKey: KeyObject): {
  authority(authority: Authority): string
  server(authority: Authority, names: readonly string[]): string
} {
  const publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
  // The bits of the key (§4.2.1.2), without the count of unused bits before them.
  const keyId = createHash('sha1')
    .update((elementsOf(publicKey)[1] ?? publicKey).subarray(3))
    .digest()
  const subjectKeyId = extension('2.5.29.14', der(DER.octets, keyId))

  function certificate({ name, period }: Authority, subject: Buffer, extensions: readonly Buffer[]): string {
    // A positive number of 16 bytes, not beginning with zeros.
    const serial = randomBytes(16)
    serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
    const signed = der(
      DER.sequence,
      VERSION_3,
      der(DER.integer, serial),
      SIGNATURE,
      name,
      der(DER.sequence, derTime(period.notBefore), derTime(period.notAfter)),
      subject,
      publicKey,
      der(0xa3, der(DER.sequence, ...extensions)),
    )
    return pemOf(der(DER.sequence, signed, SIGNATURE, derBits(sign('sha256', signed, privateKey))))
  }

  return {
    authority: (authority) =>
      certificate(authority, authority.name, [
        // A CA that signs no other CA, and its certificate only.
        extension('2.5.29.19', der(DER.sequence, YES, der(DER.integer, Buffer.from([0]))), YES),
        extension('2.5.29.15', derBits(Buffer.from([0x04]), 2), YES),
        subjectKeyId,
      ]),
    server: (authority, names) =>
      certificate(authority, SUBJECT, [
        extension('2.5.29.19', der(DER.sequence), YES),
        // Signs handshakes, as a server.
        extension('2.5.29.15', derBits(Buffer.from([0x80]), 7), YES),
        extension('2.5.29.37', der(DER.sequence, derOid('1.3.6.1.5.5.7.3.1'))),
        extension('2.5.29.17', der(DER.sequence, ...names.map(alternativeName))),
        subjectKeyId,
        extension('2.5.29.35', der(DER.sequence, der(0x80, keyId))),
      ]),
  }
}

function extension(oid: string, value: Buffer, critical: Buffer = Buffer.alloc(0)): Buffer {
  return der(DER.sequence, derOid(oid), critical, der(DER.octets, value))
}

/** An address, or a DNS name (§4.2.1.6). */
function alternativeName(name: string): Buffer {
  const address = addressBytes(name)
  return address === undefined ? der(0x82, Buffer.from(name, 'latin1')) : der(0x87, address)
}

/** A distinguished name that is only a common name. */
function nameOf(commonName: string): Buffer {
  const pair = der(DER.sequence, derOid('2.5.4.3'), der(DER.text, Buffer.from(commonName)))
  return der(DER.sequence, der(DER.set, pair))
}

function pemOf(certificate: Buffer): string {
  const lines = certificate.toString('base64').replaceAll(/.{64}/g, '$&\n').trimEnd()
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}
