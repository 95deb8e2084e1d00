import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  webcrypto,
} from 'node:crypto'
import { isIP } from 'node:net'
import type { JsonName, Name, X509Certificate } from '@peculiar/x509'
import type { TlsMaterial } from './tls-pair.ts'

/** Ten years, so that an unattended device does not become unreachable because its certificate expires. */
const YEARS = 10

/** Clients whose clock is behind accept the certificate, and so does the sidecar after its own clock is set back. */
const BACKDATED = 86_400_000

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** The name of that curve in a key of Node. */
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
export async function makeSelfSigned(host: string, names: readonly string[], wall: number): Promise<Pair> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: CURVE })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const signer = await openSigner(privateKey)
  // A CN has at most 64 characters (RFC 5280, upper bounds).
  const authority = await signer.authority(nameOf(`Postern on ${host}`.slice(0, 64)), periodAt(wall))
  return { cert: await signer.chain(authority, names), key }
}

/**
 * Makes another certificate for other names, with the same key and the same CA. With `renew` the CA certificate is made anew, too,
 * with the same key and name: clients that trust the earlier one go on until it expires.
 * @returns the new certificate file; undefined if Postern did not make the pair
 */
export async function remakeSelfSigned(
  { authority, key }: Pick<TlsMaterial, 'authority' | 'key'>,
  names: readonly string[],
  wall: number,
  renew: boolean,
): Promise<string | undefined> {
  const privateKey = createPrivateKey(key)
  if (authority === undefined || privateKey.asymmetricKeyDetails?.namedCurve !== CURVE) return undefined
  const signer = await openSigner(privateKey)
  const present = signer.parse(authority)
  if (!renew) return signer.chain(present, names)
  const next = periodAt(wall)
  // Keeps the earlier start, so that a clock that ran ahead leaves no certificate that is not valid yet.
  const notBefore = present.notBefore < next.notBefore ? present.notBefore : next.notBefore
  const notAfter = present.notAfter > next.notAfter ? present.notAfter : next.notAfter
  return signer.chain(await signer.authority(present.subjectName, { notBefore, notAfter }), names)
}

interface Period {
  readonly notBefore: Date
  readonly notAfter: Date
}

/** In whole seconds, as a certificate has them. */
function periodAt(wall: number): Period {
  const notAfter = new Date(wall)
  notAfter.setFullYear(notAfter.getFullYear() + YEARS)
  return { notBefore: new Date(wall - BACKDATED), notAfter }
}

interface Signer {
  parse(pem: string): X509Certificate
  authority(name: Name | JsonName, period: Period): Promise<X509Certificate>
  /** The certificate for the names, and behind it that of the CA. It is valid as long as the CA. */
  chain(authority: X509Certificate, names: readonly string[]): Promise<string>
}

/** Makes certificates for one key. The package is loaded here, because most starts make none. */
async function openSigner(privateKey: KeyObject): Promise<Signer> {
  // tsyringe, on which the package rests, demands this one before it.
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(webcrypto)
  const signingKey = privateKey.toCryptoKey(ALGORITHM, true, ['sign'])
  const publicKey = createPublicKey(privateKey).toCryptoKey(ALGORITHM, true, ['verify'])
  const keyId = await x509.SubjectKeyIdentifierExtension.create(publicKey)

  return {
    parse: (pem) => new x509.X509Certificate(pem),
    // A CA that signs no other CA, and its certificate only.
    authority: (name, period) =>
      x509.X509CertificateGenerator.createSelfSigned({
        name,
        ...period,
        signingAlgorithm: ALGORITHM,
        keys: { privateKey: signingKey, publicKey },
        extensions: [
          new x509.BasicConstraintsExtension(true, 0, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
          keyId,
        ],
      }),
    async chain(authority, names) {
      const certificate = await x509.X509CertificateGenerator.create({
        subject: SUBJECT,
        issuer: authority.subjectName,
        notBefore: authority.notBefore,
        notAfter: authority.notAfter,
        signingAlgorithm: ALGORITHM,
        publicKey,
        signingKey,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          // Signs handshakes, as a server.
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
          new x509.SubjectAlternativeNameExtension(
            names.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value })),
          ),
          await x509.AuthorityKeyIdentifierExtension.create(publicKey),
          keyId,
        ],
      })
      return [certificate, authority].map((each) => `${each.toString('pem')}\n`).join('')
    },
  }
}

/** A distinguished name that is only a common name. */
function nameOf(commonName: string): JsonName {
  return [{ CN: [commonName] }]
}
