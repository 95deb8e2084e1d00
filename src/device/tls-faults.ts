import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import { hostOf } from '../http/ip.ts'
import { codeOf } from '../system/setup-error.ts'
import { failureOf } from './failure.ts'
import { PIN_MISMATCH, pinOf, type TlsSettings, type UpstreamTarget } from './target.ts'

/** Why the sidecar cannot use TLS with the device, and what the operator can do about it, each as a clause. */
export interface Diagnosis {
  readonly reason: string
  readonly remedy: string
  /** The value of `upstream.tls` with which it works. */
  readonly tls?: string
}

interface Fault {
  readonly cause: string
  /** Present if looser TLS does not mend it. `at`: host and port. */
  readonly remedy?: (key: string, at: string) => string
  /** What the certificate itself says about the fault. */
  readonly detail?: (certificate: PeerCertificate) => string
  /** The remedy, which offers an alternative to `write`: writing down the fingerprint of the certificate. */
  readonly mend?: (write: string, key: string) => string
}

/** How a name that no DNS server knows leads to the device. */
const HOSTS = '/etc/hosts can lead to its address'

/** Every cause that an operator can act on. The first that matches counts. */
const FAULTS: readonly (Fault & { /** Matches its code and message. */ readonly error: RegExp })[] = [
  {
    error: /wrong.version.number|packet.length.too.long|http.request/i,
    cause: 'the device answers without TLS, and the URL says https',
    remedy: (key, at) => `set ${key}.url to http://${at}, or to the port where the device speaks TLS`,
  },
  {
    error: /HANDSHAKE_TIMEOUT/,
    cause: 'the device takes the connection, and does not answer the first message of TLS',
  },
  {
    error: /no.suitable.groups/i,
    cause: 'no group of tls.groups fits the versions of TLS that are offered',
    remedy: (key) => `add P-256 to ${key}.tls.groups, or set ${key}.tls.max_version to TLSv1.2`,
  },
  { error: /unsupported.protocol|protocol.version/i, cause: 'the device speaks only older versions of TLS' },
  { error: /dh.key.too.small|DH_PARAM_SIZE/i, cause: 'the Diffie-Hellman group of the device is too small' },
  { error: /key too weak/i, cause: 'the key in the certificate of the device is too short' },
  { error: /md too weak|signature.(?:type|alg)|sigalg/i, cause: 'the device signs with MD5 or SHA-1' },
  { error: /unsafe.legacy/i, cause: 'the device knows no secure renegotiation' },
  {
    error: /unrecognized.name/i,
    cause: 'the device does not know the server name that it is asked for',
    remedy: (key) =>
      `write its address into ${key}.url, with which it is asked for no name; or a name that it knows, which ${HOSTS}`,
  },
  {
    error: /alert.(?:\w+.certificate|certificate|unknown.ca|access.denied)|certificate.required/i,
    cause: 'the device demands a client certificate, or refuses the one that it gets',
    remedy: (key) =>
      `set ${key}.tls.cert and ${key}.tls.key to a certificate that the device takes, and its key`,
  },
  {
    error: /handshake.failure|insufficient.security|no.(?:shared.cipher|ciphers)/i,
    cause: 'the device takes no cipher, group or signature that it is offered',
  },
  { error: /DEPTH_ZERO_SELF_SIGNED/, cause: 'the certificate of the device is self-signed' },
  {
    error: /SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:GET_ISSUER|VERIFY_LEAF)/,
    cause: 'the certificate of the device is from an unknown authority',
  },
  {
    error: /CERT_HAS_EXPIRED/,
    cause: 'the certificate of the device has expired, or the clock of this machine is wrong',
    detail: ({ valid_to }) => `it was valid until ${valid_to}`,
    mend: (write) => `renew it on the device, or ${write}`,
  },
  {
    error: /CERT_NOT_YET_VALID/,
    cause: 'the certificate of the device is not valid yet, or the clock of this machine is wrong',
    detail: ({ valid_from }) => `it is valid from ${valid_from}`,
    mend: (write) => `set the clocks of this machine and the device, or ${write}`,
  },
  {
    error: /ALTNAME_INVALID|HOSTNAME_MISMATCH/,
    cause: 'the certificate of the device is for another name',
    detail: ({ subjectaltname }) => subjectaltname ?? 'it has no subjectAltName',
    mend: (write, key) => `${write}; or write one of its names into ${key}.url, which ${HOSTS}`,
  },
  {
    error: /UNSPECIFIED/,
    cause: 'the key in the certificate of the device, or a signature of its chain, is too weak',
    detail: ({ bits, asn1Curve }) =>
      bits === undefined ? `the key is on ${asn1Curve}` : `the key has ${bits} bits`,
  },
]

/** Why TLS with the device fails; undefined if the error is not about TLS. The cause holds no secret. */
export function faultOf(error: unknown): Fault | undefined {
  const code = codeOf(error)
  const message = error instanceof Error ? error.message : ''
  if (code === PIN_MISMATCH) return { cause: message }
  if (!failureOf(error).startsWith('tls_')) return undefined
  const known = FAULTS.find(({ error: pattern }) => pattern.test(`${code} ${message}`))
  return known ?? { cause: `TLS fails (${code})` }
}

/** A handshake that succeeds while the certificate is not verified. */
export interface Handshake {
  readonly certificate: PeerCertificate
  /** The code of OpenSSL or Node if the certificate is not trusted. */
  readonly refusal: string | undefined
  /** The groups that it needs, as `upstream.tls.groups` names them. */
  readonly groups: readonly string[]
}

/**
 * Explains why a certificate is refused; undefined if it is accepted.
 *
 * @param key the configuration key of the service
 * @param settings with which the handshake succeeded
 */
export function explainCertificate(
  { certificate, refusal }: Handshake,
  { origin }: Pick<UpstreamTarget, 'origin'>,
  settings: TlsSettings,
  key: string,
): Diagnosis | undefined {
  const { pin, ca, insecure, weak } = settings
  const host = hostOf(new URL(origin))
  const shown = pinOf(certificate.raw)
  const isAccepted = pin === undefined ? insecure || refusal === undefined : pin === shown
  if (isAccepted) return undefined
  const tls = linesFor({ ...settings, pin: shown })
  const compare = 'compare the fingerprint with that on the device, then write'
  const write = `${compare} under ${key}: tls: ${tls}${ca === undefined ? '' : ` (without ca)`}`
  const found = (reason: string, remedy = write): Diagnosis => ({
    reason: `${reason}; its SHA-256 fingerprint is ${certificate.fingerprint256}`,
    remedy,
    tls,
  })
  if (pin !== undefined) {
    return found(
      `the certificate of ${origin} is not that of ${key}.tls.pin: ${shown} came`,
      `if the device has a new certificate, ${write}; if not, another machine answers in its place`,
    )
  }
  const known: Fault | undefined = FAULTS.find(({ error }) => error.test(refusal ?? ''))
  const cause = known?.cause ?? `the certificate of the device is refused (${refusal})`
  const named = cause.replace('the device', origin)
  if (known?.detail !== undefined) {
    return found(`${named}: ${known.detail(certificate)}`, known.mend?.(write, key))
  }
  // Once the authority is trusted, a wrong name would be the next fault.
  const misnamed = checkServerIdentity(host, certificate) !== undefined
  const authority = ca === undefined ? '' : `, and not in ${key}.tls.ca`
  return found(
    `${named}${authority}${misnamed ? `, and not for ${host}` : ''}`,
    misnamed || weak
      ? write
      : `${write}; or set ${key}.tls.ca to a PEM file with that certificate, or that of its authority`,
  )
}

/** The value of `tls` with these settings, as the operator writes it. Files are left out. */
export function linesFor({ maxVersion, groups, weak = false, pin }: TlsSettings): string {
  const lines = [
    ...(maxVersion === undefined ? [] : [`max_version: ${maxVersion}`]),
    ...(groups === undefined ? [] : [`groups: [${groups.join(', ')}]`]),
    ...(weak ? ['weak: true'] : []),
    ...(pin === undefined ? [] : [`pin: ${pin}`]),
  ]
  return `{${lines.join(', ')}}`
}
