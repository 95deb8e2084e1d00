import type { PeerCertificate } from 'node:tls'
import { codeOf } from '../system/setup-error.ts'
import type { UpstreamTarget } from './target.ts'

/** Why the sidecar cannot use TLS with the device, and what the operator can do about it, each as a clause. */
export interface Diagnosis {
  readonly reason: string
  readonly remedy: string
  /** PEM; set if trusting it is enough. */
  readonly certificate?: string
}

/**
 * Explains why a certificate is refused.
 *
 * @param refusal the code of OpenSSL or Node
 * @param key the configuration key of the service
 */
export function explainCertificate(
  refusal: string,
  certificate: PeerCertificate,
  { origin, ca }: Pick<UpstreamTarget, 'origin' | 'ca'>,
  key: string,
): Diagnosis {
  const named = `the certificate of ${origin}`
  const print = `its SHA-256 fingerprint is ${certificate.fingerprint256}`
  switch (refusal) {
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
      return {
        reason: `${named} is self-signed${ca === undefined ? '' : ` and not in ${key}.tls.ca`}; ${print}`,
        remedy: trustIt(origin, key),
        certificate: pemOf(certificate),
      }
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
      return {
        reason: `${named} is from an authority that ${ca === undefined ? 'the system does not know' : `is not in ${key}.tls.ca`}; ${print}`,
        remedy: `set ${key}.tls.ca to a PEM file with the certificate of that authority; ${key}.tls.insecure: true accepts any certificate`,
      }
    case 'CERT_HAS_EXPIRED':
      return {
        reason: `${named} expired on ${certificate.valid_to}, or the clock of this machine is wrong`,
        remedy: `renew it on the device; until then only ${key}.tls.insecure: true accepts it`,
      }
    case 'CERT_NOT_YET_VALID':
      return {
        reason: `${named} is not valid before ${certificate.valid_from}, or the clock of this machine is wrong`,
        remedy: 'set the clocks of this machine and the device',
      }
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return {
        reason: `${named} is for another host: ${certificate.subjectaltname ?? 'it has no subjectAltName'}`,
        remedy: `set ${key}.url to one of its names, renew it with the name in ${key}.url, or set ${key}.tls.insecure: true, which accepts any certificate`,
      }
    default:
      return { reason: `${named} is refused (${refusal}); ${print}`, remedy: trustIt(origin, key) }
  }
}

function pemOf({ raw }: PeerCertificate): string {
  const lines = raw.toString('base64').replaceAll(/.{64}/g, '$&\n').trimEnd()
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}

function trustIt(origin: string, key: string): string {
  return `compare the fingerprint with that on the device, then save the certificate with openssl s_client -connect ${hostAndPort(origin)} </dev/null | openssl x509 > device.pem and set ${key}.tls.ca to that file; ${key}.tls.insecure: true accepts any certificate`
}

/** Host and port of an origin, also if the port is the default one. */
export function hostAndPort(origin: string): string {
  const { protocol, hostname, port } = new URL(origin)
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
}

/** Explains why the handshake with an https device fails. Undefined if the reason has nothing to do with TLS. */
export function explainHandshake(error: unknown, origin: string, key: string): Diagnosis | undefined {
  const code = codeOf(error)
  const text = error instanceof Error ? error.message : ''
  if (/wrong version number|packet length too long|http request/i.test(text)) {
    return {
      reason: `the device answers without TLS at ${hostAndPort(origin)}, and ${key}.url says https`,
      remedy: `set ${key}.url to http://${hostAndPort(origin)}, or to the port where the device speaks TLS`,
    }
  }
  if (/unsupported protocol|protocol version/i.test(text)) {
    return {
      reason: `the device speaks only versions of TLS before 1.2 (${code})`,
      remedy:
        'renew its firmware, or start Node with NODE_OPTIONS=--tls-min-v1.0, which allows the old versions',
    }
  }
  if (!code.startsWith('ERR_SSL_') && code !== 'EPROTO') return undefined
  return {
    reason: `the TLS handshake with ${origin} fails (${code})`,
    remedy: `openssl s_client -connect ${hostAndPort(origin)} shows what the device offers`,
  }
}
