import { isIP } from 'node:net'
import { type ConnectionOptions, createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import type { VerifyOptions } from './options.ts'

/** The server under test: where it is, and how it is trusted. */
export type Target = Pick<VerifyOptions, 'url' | 'tls'>

/** Without the brackets of an IPv6 address. */
export function hostOf({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[|\]$/g, '')
}

export function portOf({ port, protocol }: Pick<URL, 'port' | 'protocol'>): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}

/** The name to send by SNI, which takes no IP address (RFC 6066 §3). Node sends none for an empty text. */
export function serverNameOf(host: string): string {
  return isIP(host) === 0 ? host : ''
}

/**
 * How to connect to the server over TLS. Without the name, Node would take it from `Host`, which some requests spoof. Without `ca`
 * the authorities of Node and those of the system are trusted.
 */
export function tlsOptions({ url, tls }: Target): ConnectionOptions {
  const host = hostOf(url)
  return {
    host,
    port: portOf(url),
    servername: serverNameOf(host),
    rejectUnauthorized: !tls.insecure,
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.ca === undefined && !tls.insecure && url.protocol === 'https:'
      ? { secureContext: usualTrust() }
      : {}),
  }
}

let usual: SecureContext | undefined

/** Made once, because to read some hundred certificates takes 50 ms. On Linux the system's are in SSL_CERT_FILE and SSL_CERT_DIR. */
function usualTrust(): SecureContext {
  usual ??= createSecureContext({
    ca: [...new Set([...getCACertificates('default'), ...getCACertificates('system')])],
  })
  return usual
}
