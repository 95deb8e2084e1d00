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
const DER = {
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

/** One DER element (X.690): tag, length, content. */
function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const length = content.reduce((sum, part) => sum + part.length, 0)
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), ...content])
}

/** A bit string. `unused`: the number of unused bits in its last byte. */
function derBits(content: Uint8Array, unused = 0): Buffer {
  return der(DER.bits, Buffer.from([unused]), content)
}

/** An object identifier from its encoded form. */
function derOid(hex: string): Buffer {
  return der(DER.oid, Buffer.from(hex, 'hex'))
}

/** A time in whole seconds. Until 2049 the year has two digits (RFC 5280 §4.1.2.5). */
function derTime(time: Date): Buffer {
  const digits = time.toISOString().replace(/\.\d+|[-:T]/g, '')
  return time.getUTCFullYear() < 2050
    ? der(DER.utcTime, Buffer.from(digits.slice(2)))
    : der(DER.time, Buffer.from(digits))
}

/** The start and end of the content of the element at `at`. Only for DER that OpenSSL has accepted. */
function contentAt(bytes: Buffer, at: number): { readonly start: number; readonly end: number } {
  const first = bytes[at + 1] ?? 0
  const digits = first < 0x80 ? 0 : first & 0x7f
  const start = at + 2 + digits
  return { start, end: start + (digits === 0 ? first : bytes.readUIntBE(at + 2, digits)) }
}

/** Ten years, so that an unattended device does not become unreachable because its certificate expires. */
const YEARS = 10

/**
 * How far (ms) the validity begins in the past: a client whose clock is behind accepts the certificate, and so does the sidecar after its
 * own clock was set back.
 */
const BACKDATED = 86_400_000

const CURVE = 'prime256v1'

/** A certificate file and a key file, both in PEM. */
type Pair = Pick<TlsMaterial, 'cert' | 'key'>

/**
 * The subject of the server certificate. It must differ from the name of the CA: with equal subject and issuer the certificate counts as
 * self-issued (RFC 5280 §6.1).
 */
const SUBJECT = distinguishedName('Postern server certificate')

/**
 * Makes a key, a CA certificate and a server certificate signed by that CA. Both certificates have the same key and are in one file, so a
 * client that trusts the file accepts every later server certificate of this key. A single self-signed certificate is not enough: OpenSSL
 * trusts it only byte for byte (H111), and rustls and Firefox refuse a CA as a server certificate. The CA may sign any name, because later
 * names are unknown (RFC 5280 §4.2.1.10). So a client should trust it for this device only.
 *
 * @param wall milliseconds since the Unix epoch
 */
export function makeSelfSigned(host: string, names: readonly string[], wall: number): Pair {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: CURVE })
  // A CN has at most 64 characters (RFC 5280, upper bounds).
  const authority = { name: distinguishedName(`Postern on ${host}`.slice(0, 64)), ...periodAt(wall) }
  return {
    cert: serverCertificate(privateKey, authority, names) + authorityCertificate(privateKey, authority),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/**
 * Makes another server certificate for other names, with the same key and the same CA. With `renew` it also renews the CA certificate, with
 * the same key and name: clients that trust the earlier one still accept the pair until that one expires.
 *
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
  const { raw, validFromDate: notBefore, validToDate: notAfter } = new X509Certificate(authority)
  const present = { name: issuerIn(raw), notBefore, notAfter }
  if (!renew) return serverCertificate(privateKey, present, names) + authority
  const next = periodAt(wall)
  // The earlier start is kept: if the clock was ahead, a later start could lie in the future.
  const from = notBefore < next.notBefore ? notBefore : next.notBefore
  const until = notAfter > next.notAfter ? notAfter : next.notAfter
  const renewed = { name: present.name, notBefore: from, notAfter: until }
  return serverCertificate(privateKey, renewed, names) + authorityCertificate(privateKey, renewed)
}

interface Authority {
  /** In DER. */
  readonly name: Buffer
  readonly notBefore: Date
  readonly notAfter: Date
}

/** The issuer of a certificate, in DER. It follows version, serial number and algorithm (RFC 5280 §4.1). */
function issuerIn(raw: Buffer): Buffer {
  let { start } = contentAt(raw, contentAt(raw, 0).start)
  for (let skipped = 0; skipped < 3; skipped += 1) start = contentAt(raw, start).end
  return raw.subarray(start, contentAt(raw, start).end)
}

function periodAt(wall: number): Pick<Authority, 'notBefore' | 'notAfter'> {
  const notAfter = new Date(wall)
  notAfter.setFullYear(notAfter.getFullYear() + YEARS)
  return { notBefore: new Date(wall - BACKDATED), notAfter }
}

const VERSION_3 = der(0xa0, der(DER.integer, Buffer.from([2])))
const YES = der(DER.boolean, Buffer.from([0xff]))

/** ecdsa-with-SHA256. */
const SIGNATURE = der(DER.sequence, derOid('2a8648ce3d040302'))

function authorityCertificate(privateKey: KeyObject, authority: Authority): string {
  return signed(privateKey, authority, authority.name, () => [
    // Basic constraints: a CA that signs no other CA. Key usage: it signs certificates.
    extension('551d13', der(DER.sequence, YES, der(DER.integer, Buffer.from([0]))), YES),
    extension('551d0f', derBits(Buffer.from([0x04]), 2), YES),
  ])
}

/** A server certificate, valid as long as the CA. */
function serverCertificate(privateKey: KeyObject, authority: Authority, names: readonly string[]): string {
  return signed(privateKey, authority, SUBJECT, (keyId) => [
    extension('551d13', der(DER.sequence), YES),
    // Key usage: it signs handshakes. Extended key usage: as a server.
    extension('551d0f', derBits(Buffer.from([0x80]), 7), YES),
    extension('551d25', der(DER.sequence, derOid('2b06010505070301'))),
    extension('551d11', der(DER.sequence, ...names.map(alternativeName))),
    extension('551d23', der(DER.sequence, der(0x80, keyId))),
  ])
}

/** A certificate for the key, signed with it (RFC 5280), in PEM. */
function signed(
  privateKey: KeyObject,
  { name, notBefore, notAfter }: Authority,
  subject: Buffer,
  extensionsFor: (keyId: Buffer) => readonly Buffer[],
): string {
  const publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
  // The key id is the hash of the public key bits (§4.2.1.2): the curve point at the end of the SPKI.
  const keyId = createHash('sha1').update(publicKey.subarray(-65)).digest()
  // The serial number is positive and has 16 bytes without a leading zero byte.
  const serial = randomBytes(16)
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
  const content = der(
    DER.sequence,
    VERSION_3,
    der(DER.integer, serial),
    SIGNATURE,
    name,
    der(DER.sequence, derTime(notBefore), derTime(notAfter)),
    subject,
    publicKey,
    der(0xa3, der(DER.sequence, ...extensionsFor(keyId), extension('551d0e', der(DER.octets, keyId)))),
  )
  const whole = der(DER.sequence, content, SIGNATURE, derBits(sign('sha256', content, privateKey)))
  return new X509Certificate(whole).toString()
}

function extension(oid: string, value: Buffer, critical: Buffer = Buffer.alloc(0)): Buffer {
  return der(DER.sequence, derOid(oid), critical, der(DER.octets, value))
}

/** A subject alternative name: an IP address or a DNS name (§4.2.1.6). */
function alternativeName(name: string): Buffer {
  const address = addressBytes(name)
  return address === undefined ? der(0x82, Buffer.from(name, 'latin1')) : der(0x87, address)
}

/** A distinguished name with only a common name. */
function distinguishedName(commonName: string): Buffer {
  const pair = der(DER.sequence, derOid('550403'), der(DER.text, Buffer.from(commonName)))
  return der(DER.sequence, der(DER.set, pair))
}
