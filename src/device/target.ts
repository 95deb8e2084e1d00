import { constants, hash } from 'node:crypto'
import { createSecureContext, type SecureContext, type SecureVersion } from 'node:tls'
import type { HttpVersion } from '../http1/request-writer.ts'
import type { ResponseRules } from '../http1/response-reader.ts'

/** `shared`: a connection to the device carries one request after the other. `never`: only one, with `Connection: close`. */
type Reuse = 'shared' | 'never'

/** Deadlines towards the device, in ms. */
export interface UpstreamDeadlines {
  readonly connect: number
  /** From the request to the response head. */
  readonly response: number
  /** Between two pieces of a body, in either direction. */
  readonly idle: number
}

/** Where the device is and how to talk to it. */
export interface UpstreamTarget {
  /** Scheme, host and port; `http://localhost` for a Unix socket. */
  readonly origin: string
  readonly socketPath: string | undefined
  /** The zone of an IPv6 address with its percent sign (`%eth0`), which names an interface of this machine. */
  readonly zone?: string
  /** Only for https; undefined: the defaults. */
  readonly tls?: DeviceTls | undefined
  readonly reuse: Reuse
  readonly parser: ResponseRules
  /** The HTTP version of requests; 1.1 if it is left out. With 1.0, `reuse` is `never`. */
  readonly version?: HttpVersion
}

/** `upstream.tls`, with its files read. A key that is left out has its default. */
export interface TlsSettings {
  /** Undefined: the newest that OpenSSL has. */
  readonly maxVersion?: SecureVersion | undefined
  /** The offered groups of the key exchange by OpenSSL's names; in TLS 1.2 also the curves of certificates. */
  readonly groups?: readonly string[] | undefined
  /** TLS 1.0 and 1.1, old ciphers, small keys and groups, signatures by SHA-1 and MD5, no secure renegotiation. */
  readonly weak?: boolean
  /** PEM; undefined: the authorities of the system. */
  readonly ca?: string | undefined
  /** The certificate is not verified. */
  readonly insecure?: boolean
  /** The one certificate that is accepted, as `pinOf` names it. It is not verified otherwise. */
  readonly pin?: string | undefined
  /** The client certificate and its key, both in PEM. */
  readonly pair?: { readonly cert: string; readonly key: string } | undefined
}

/** TLS to one service of the device. Its connections share the context, so a connection costs no more than its handshake. */
export interface DeviceTls extends TlsSettings {
  readonly context: SecureContext
}

/**
 * The groups of the key exchange. Only the first sends a key (`*`): a key of ML-KEM makes the first message 1600 bytes long instead of 340,
 * which overflows the small TLS buffer of some devices. A device that wants ML-KEM asks for its key (HelloRetryRequest).
 */
const GROUPS = '*X25519:P-256:P-384:X25519MLKEM768'

/**
 * Offers every old cipher. DHE comes last: OpenSSL refuses its groups below 1024 bits at any level, so a device that takes the first cipher
 * of the client should take another one.
 */
const WEAK = {
  minVersion: 'TLSv1',
  ciphers: 'ALL:!aNULL:!eNULL:!PSK:!SRP:!ARIA:!AESCCM:+kDHE:@SECLEVEL=0',
  ecdhCurve: 'X25519:P-256:P-384:P-521:P-224:P-192',
  secureOptions: constants.SSL_OP_LEGACY_SERVER_CONNECT,
} as const

/** Throws the error of OpenSSL if a certificate, a key or a group is unusable. The connections of a service share the context. */
export function deviceTls(settings: TlsSettings): DeviceTls {
  const { maxVersion, groups, weak = false, ca, pair } = settings
  const context = createSecureContext({
    minVersion: 'TLSv1.2',
    ecdhCurve: GROUPS,
    ...(maxVersion === undefined ? {} : { maxVersion }),
    ...(ca === undefined ? {} : { ca }),
    ...pair,
    ...(weak && WEAK),
    ...(groups === undefined ? {} : { ecdhCurve: groups.join(':') }),
  })
  return { ...settings, context }
}

/** The first name that OpenSSL does not know as a group. */
export function unknownGroup(groups: readonly string[]): string | undefined {
  return groups.find((name) => {
    try {
      createSecureContext({ ecdhCurve: name })
      return false
    } catch {
      return true
    }
  })
}

/** The SHA-256 of a certificate's DER in Base64, as `upstream.tls.pin` writes it. */
export function pinOf(certificate: Buffer = Buffer.alloc(0)): string {
  return `sha256/${hash('sha256', certificate, 'base64')}`
}

/** The error code if the device shows another certificate than the pinned one. */
export const PIN_MISMATCH = 'ERR_TLS_CERT_PIN'
