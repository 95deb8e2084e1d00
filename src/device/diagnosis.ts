import type { PeerCertificate, TLSSocket } from 'node:tls'
import type { UpstreamFailure } from '../http/refusal.ts'
import { createSocketOpener } from './open-socket.ts'
import type { UpstreamTarget } from './target.ts'
import { type Diagnosis, explainCertificate, explainHandshake } from './tls-faults.ts'

type Greeting =
  /** `refusal`: why the certificate is not accepted. */
  | { readonly kind: 'tls'; readonly refusal: string | undefined; readonly certificate: PeerCertificate }
  | { readonly kind: 'failed'; readonly error: unknown }

/** Whether `diagnose` may find the cause of such a failure. Servers for TLS mostly close a connection in cleartext. */
export function canDiagnose(failure: UpstreamFailure, { origin, socketPath }: UpstreamTarget): boolean {
  if (socketPath !== undefined) return false
  return failure === 'connection_terminated' || (origin.startsWith('https:') && failure.startsWith('tls_'))
}

/**
 * Opens a TLS connection to the device, sends no request over it, and explains what keeps the sidecar from talking to the device: a
 * certificate that it does not accept, or the wrong scheme in the URL. Undefined if neither is the cause.
 *
 * @param key the configuration key of the service, such as `upstream`
 * @param limit ms
 */
export async function diagnose(
  target: UpstreamTarget,
  key: string,
  limit: number,
): Promise<Diagnosis | undefined> {
  const { protocol, host } = new URL(target.origin)
  if (protocol === 'http:') {
    const found = await greet({ ...target, origin: `https://${withPort(target.origin)}` }, limit)
    return found.kind === 'failed'
      ? undefined
      : {
          reason: `the device speaks TLS at ${host}, and ${key}.url says http`,
          remedy: `set ${key}.url to https://${withPort(target.origin)}`,
        }
  }
  const found = await greet(target, limit)
  if (found.kind === 'failed') return explainHandshake(found.error, target.origin, key)
  return found.refusal === undefined || target.insecure
    ? undefined
    : explainCertificate(found.refusal, found.certificate, target, key)
}

/** Host and port, also if the port is the default one. */
function withPort(origin: string): string {
  const { protocol, hostname, port } = new URL(origin)
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
}

/** The certificate is read even if it is refused: nothing is sent over this connection. */
function greet(target: UpstreamTarget, limit: number): Promise<Greeting> {
  return new Promise((resolve) => {
    const settle = (greeting: Greeting): void => {
      resolve(greeting)
      socket.destroy()
    }
    const socket = createSocketOpener({ ...target, insecure: true }).open(() => {
      // The cast holds because the origin is https.
      const secure = socket as TLSSocket
      // A code in fact, though its type is `Error`.
      const refusal = secure.authorized ? undefined : String(secure.authorizationError)
      settle({ kind: 'tls', refusal, certificate: secure.getPeerCertificate() })
    })
    socket.setTimeout(limit, () => settle({ kind: 'failed', error: new Error('no answer') }))
    socket.once('error', (error) => settle({ kind: 'failed', error }))
    socket.once('close', () => resolve({ kind: 'failed', error: new Error('closed') }))
  })
}
