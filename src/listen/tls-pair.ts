import type { KeyObject } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { type Certificates, certificatesIn, nameOf, type PemFile, privateKeyIn } from '../system/pem.ts'
import { reasonOf } from '../system/setup-error.ts'
import { namesIn } from './certificate-names.ts'
import type { ValidPeriod } from './validity.ts'

/** A certificate chain and its key, both in PEM, with which TLS handshakes succeed. */
export interface TlsMaterial {
  readonly cert: string
  readonly key: string
  readonly valid: ValidPeriod
  readonly names: readonly string[]
  /** The CA certificate (PEM) at the end of the chain, if it belongs to the same key, as in a pair that Postern made. */
  readonly authority: string | undefined
}

/** Checks that TLS handshakes can succeed with the pair in these two files. Returns the pair, or which file is wrong and why. */
export function inspectPair(cert: PemFile, key: PemFile): TlsMaterial | string {
  const chain = certificatesIn(cert)
  const secret = privateKeyIn(key)
  if (typeof chain === 'string' || typeof secret === 'string') {
    if (typeof certificatesIn(key) !== 'string' && typeof privateKeyIn(cert) !== 'string') {
      return `${cert.path} holds the private key and ${key.path} the certificate: swap the two`
    }
    return [chain, secret].filter((each) => typeof each === 'string').join('; ')
  }
  try {
    const problem = mismatch(chain, secret)
    if (problem !== undefined) return unusable(cert, key, problem)
    // OpenSSL refuses more, such as a key that is too short.
    createSecureContext({ cert: cert.text, key: key.text })
  } catch (error) {
    return unusable(cert, key, reasonOf(error))
  }
  return {
    cert: cert.text,
    key: key.text,
    valid: validPeriod(chain, cert.path),
    names: namesIn(chain[0]),
    authority: authorityOf(chain, secret),
  }
}

function authorityOf(chain: Certificates, key: KeyObject): string | undefined {
  const last = chain.at(-1)
  const isOwn = last?.ca === true && last.checkIssued(last) && last.checkPrivateKey(key)
  return isOwn ? last.toString() : undefined
}

function unusable(cert: PemFile, key: PemFile, why: string): string {
  return `${cert.path} and ${key.path} do not make a usable pair: ${why}`
}

/**
 * Why TLS cannot use the key with the certificate; undefined if it can. OpenSSL does not check this: it accepts a key of another
 * type than the certificate's and then every handshake fails.
 */
function mismatch(chain: Certificates, key: KeyObject): string | undefined {
  const [given, wanted] = [kindOf(key), kindOf(chain[0].publicKey)]
  if (chain[0].checkPrivateKey(key)) {
    return KINDS.includes(given) ? undefined : `TLS has no signature scheme for a key that is ${given}`
  }
  const index = chain.findIndex((certificate) => certificate.checkPrivateKey(key))
  if (index > 0)
    return `the key belongs to certificate ${index + 1} of the file, but must belong to the first`
  return given === wanted
    ? 'the key belongs to another certificate'
    : `the key is ${given}, the certificate is for ${wanted}`
}

/** The curves of RFC 8446 §4.2.3 and RFC 8734. With any other curve OpenSSL accepts the pair and every handshake fails. */
const CURVES = [
  'prime256v1',
  'secp384r1',
  'secp521r1',
  'brainpoolP256r1',
  'brainpoolP384r1',
  'brainpoolP512r1',
]

const KINDS = ['RSA', 'RSA-PSS', 'ED25519', 'ED448', ...CURVES.map((curve) => `EC (${curve})`)]

function kindOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string {
  const curve = asymmetricKeyDetails?.namedCurve
  return `${asymmetricKeyType?.toUpperCase()}${curve === undefined ? '' : ` (${curve})`}`
}

/** A client accepts a chain only while each of its certificates is valid. */
function validPeriod(chain: Certificates, path: string): ValidPeriod {
  const named = chain.map((certificate, i) => ({ certificate, of: nameOf(i, chain.length, path) }))
  const begins = named.map(({ certificate, of }) => ({ of, at: certificate.validFromDate.getTime() }))
  const ends = named.map(({ certificate, of }) => ({ of, at: certificate.validToDate.getTime() }))
  return {
    from: begins.reduce((latest, each) => (each.at > latest.at ? each : latest)),
    until: ends.reduce((earliest, each) => (each.at < earliest.at ? each : earliest)),
  }
}
