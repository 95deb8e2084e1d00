import type { KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { canonicalHost } from '../http/ip.ts'
import type { Logger } from '../record/log.ts'
import { TROUBLES } from '../record/troubles.ts'
import type { Clock } from '../system/clock.ts'
import { everySecond } from '../system/every-second.ts'
import {
  type Certificates,
  certificateName,
  certificatesIn,
  type PemFile,
  privateKeyIn,
} from '../system/pem.ts'
import { reasonOf } from '../system/setup-error.ts'

/** A certificate chain and its key, both in PEM, with which TLS handshakes succeed. */
export interface TlsMaterial {
  readonly cert: string
  readonly key: string
  readonly valid: ValidPeriod
  readonly names: readonly string[]
  /** The CA certificate (PEM) at the end of the chain, if it belongs to the same key, as in a pair that Postern made. */
  readonly authority: string | undefined
}

/** Checks that TLS handshakes can succeed with the pair in these two files. Returns the pair, or a message that names the wrong file. */
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
    // OpenSSL makes further checks: it refuses a key that is too short.
    createSecureContext({ cert: cert.text, key: key.text })
  } catch (error) {
    return unusable(cert, key, reasonOf(error))
  }
  return {
    cert: cert.text,
    key: key.text,
    valid: validPeriod(chain, cert.path),
    names: subjectNames(chain[0]),
    authority: authorityOf(chain, secret),
  }
}

/** The DNS names and IP addresses of a certificate (RFC 5280 §4.2.1.6) in canonical form. Other kinds of names are left out. */
function subjectNames({ subjectAltName = '' }: X509Certificate): readonly string[] {
  const found = Array.from(
    subjectAltName.matchAll(/(?:^|, )(?:DNS|IP Address):([^",]*)/g),
    ([, name = '']) => name,
  )
  return found.map((name) => canonicalHost(name) ?? name)
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
 * The reason why TLS cannot use the key with the certificate; undefined if it can. OpenSSL does not check this: it accepts a key of another
 * type than that of the certificate, and then every handshake fails.
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

/** The time in which all certificates of a chain are valid: a client refuses the chain when one of them is not. */
function validPeriod(chain: Certificates, path: string): ValidPeriod {
  const named = chain.map((certificate, i) => ({ certificate, of: certificateName(i, chain.length, path) }))
  const begins = named.map(({ certificate, of }) => ({ of, at: certificate.validFromDate.getTime() }))
  const ends = named.map(({ certificate, of }) => ({ of, at: certificate.validToDate.getTime() }))
  return {
    from: begins.reduce((latest, each) => (each.at > latest.at ? each : latest)),
    until: ends.reduce((earliest, each) => (each.at < earliest.at ? each : earliest)),
  }
}

/** The time in which a certificate chain is valid, with the certificate that sets each end. */
interface ValidPeriod {
  readonly from: Bound
  readonly until: Bound
}

interface Bound {
  /** Milliseconds since the Unix epoch. */
  readonly at: number
  /** The name of the certificate in messages. */
  readonly of: string
}

/** `expiring`: the last 30 days of the validity; if it is shorter than 90 days, its last third. */
type Validity = 'not-yet-valid' | 'valid' | 'expiring' | 'expired'

const DAY = 86_400_000

/** Long enough for a renewal with a purchase and a maintenance window. ACME clients renew short-lived certificates in the last third. */
const NOTICE = 30 * DAY

/** @param wall milliseconds since the Unix epoch */
export function validityOf({ from, until }: ValidPeriod, wall: number): Validity {
  if (wall < from.at) return 'not-yet-valid'
  if (wall >= until.at) return 'expired'
  return wall >= until.at - Math.min(NOTICE, (until.at - from.at) / 3) ? 'expiring' : 'valid'
}

/** Describes the validity in one sentence, for `check` and the log. */
export function describeValidity(period: ValidPeriod, wall: number): string {
  const { from, until } = period
  switch (validityOf(period, wall)) {
    case 'not-yet-valid':
      return `${from.of} is not valid before ${dateOf(from)}: clients that check it do not connect. Is the clock right?`
    case 'expired':
      return `${until.of} expired on ${dateOf(until)}: clients that check it do not connect`
    case 'expiring':
      return `${until.of} expires on ${dateOf(until)}, in ${Math.ceil((until.at - wall) / DAY)} days`
    case 'valid':
      return `${until.of} is valid until ${dateOf(until)}`
  }
}

function dateOf({ at }: Bound): string {
  return new Date(at).toISOString()
}

const EXPIRES = TROUBLES.PosternCertificateExpires

const LOGGED = {
  'not-yet-valid': ['error', 'the certificate is not valid yet', undefined],
  expired: ['error', 'the certificate has expired', EXPIRES.remedy],
  expiring: ['warn', EXPIRES.line, EXPIRES.remedy],
  valid: ['info', 'the certificate is valid', undefined],
} as const

/** How often the log repeats that a certificate is not valid, or expires soon (ms). */
const REPEAT = 86_400_000

/**
 * Logs that the served certificate is not valid yet, expires soon or has expired: when it is first served, when the state changes, and once
 * a day. It also logs when the certificate has become valid.
 */
export function watchValidity(clock: Clock, log: Logger) {
  let period: ValidPeriod | undefined
  let logged: Validity = 'valid'
  let loggedAt = 0

  function check(): void {
    if (period === undefined) return
    const wall = clock.wall()
    const validity = validityOf(period, wall)
    const isDue = validity !== 'valid' && Math.abs(wall - loggedAt) >= REPEAT
    if (validity === logged && !isDue) return
    logged = validity
    loggedAt = wall
    const [level, message, remedy] = LOGGED[validity]
    log[level]({ reason: describeValidity(period, wall), remedy }, message)
  }

  const seconds = everySecond(clock, check)
  return {
    /** Call this when new connections begin to use a certificate with this period. */
    served(next: ValidPeriod): void {
      period = next
      loggedAt = 0
      check()
    },
    close: seconds.close,
  }
}
