import { once } from 'node:events'
import type { RequestOptions } from 'node:http'
import { connect, type TLSSocket } from 'node:tls'
import type { KnownCertificate } from '../listen/tls-material.ts'
import { readPeersSafely } from '../system/peer-certificate.ts'
import { SetupError } from '../system/setup-error.ts'

/**
 * Opens a TLS connection to a listener of the sidecar. With `known`, the server must have exactly this certificate, with any names and
 * dates, because a sidecar also serves an expired one; otherwise rejects with a `SetupError`, before anything is sent.
 *
 * @param signal closes the connection
 */
export async function connectToKnown(
  { host, port, socketPath }: Pick<RequestOptions, 'host' | 'port' | 'socketPath'>,
  known: KnownCertificate | undefined,
  signal: AbortSignal,
): Promise<TLSSocket> {
  readPeersSafely()
  const where = socketPath ? { path: socketPath } : { host: String(host), port: Number(port) }
  const socket = connect({ ...where, rejectUnauthorized: false })
  signal.addEventListener('abort', () => socket.destroy())
  try {
    await once(socket, 'secureConnect', { signal })
    const served = socket.getPeerX509Certificate()?.fingerprint256
    if (known === undefined || served === known.certificate.fingerprint256) return socket
    throw new SetupError(`another certificate than that in ${known.file} is served there`)
  } catch (error) {
    socket.destroy()
    throw error
  }
}
