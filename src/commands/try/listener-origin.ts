import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { isLoopback } from '../../http/ip.ts'
import type { KnownCertificate } from '../../listen/tls-material.ts'
import { formatHostPort } from '../../system/listen-address.ts'
import type { ReachedAt } from '../find-sidecar.ts'

/** The name of a listener for clients on this machine. */
export interface ListenerOrigin {
  /** Such as `https://localhost:8443`. */
  readonly origin: string
  /** The words by which curl reaches and trusts it. */
  readonly curl: readonly string[]
}

/**
 * Names a listener so that its certificate is valid for the name: `localhost`, its address, or the first name in the certificate. curl gets
 * the address of that name, because DNS may not have it.
 */
export function originOf(at: ReachedAt, known: KnownCertificate | undefined): ListenerOrigin {
  const scheme = known === undefined ? 'http' : 'https'
  const trust = known === undefined ? [] : ['--cacert', known.file]
  const isUnix = 'socketPath' in at
  const host = isUnix || isLoopback(at.host) ? 'localhost' : at.host
  const name = known === undefined || isValidFor(known.certificate, host) ? host : nameIn(known.certificate)
  if (isUnix)
    return { origin: `${scheme}://${name ?? host}`, curl: [...trust, '--unix-socket', at.socketPath] }
  const { port } = at
  const way =
    name === undefined || name === host ? [] : ['--connect-to', `::${formatHostPort({ host, port })}`]
  return { origin: `${scheme}://${formatHostPort({ host: name ?? host, port })}`, curl: [...trust, ...way] }
}

function isValidFor(certificate: X509Certificate, host: string): boolean {
  const valid = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)
  return valid !== undefined
}

/** The first DNS name in a certificate; with a wildcard, a name that it matches. Undefined without one. */
function nameIn({ subjectAltName = '' }: X509Certificate): string | undefined {
  const [, name] = /\bDNS:([\w.*-]+)/.exec(subjectAltName) ?? []
  return name?.replace('*', 'device')
}
