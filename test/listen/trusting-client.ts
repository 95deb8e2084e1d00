import { once } from 'node:events'
import { isIP } from 'node:net'
import tls from 'node:tls'
import { closeLater } from '../support/cleanup.ts'

/**
 * Connects to a sidecar as a client that trusts only `ca` and that calls the sidecar `name`. The connection goes to the host of
 * `url`, whatever the name is. Rejects with OpenSSL's or Node's reason if the certificate is not for the name.
 */
export async function connectAs(name: string, url: string, ca: string): Promise<tls.TLSSocket> {
  const { hostname, port } = new URL(url)
  const socket = tls.connect({
    host: hostname,
    port: Number(port),
    ca,
    ALPNProtocols: ['http/1.1'],
    ...(isIP(name) === 0 ? { servername: name } : {}),
    checkServerIdentity: (_host, certificate) => tls.checkServerIdentity(name, certificate),
  })
  closeLater(() => void socket.destroy())
  await once(socket, 'secureConnect')
  return socket
}

/** The names in the certificate that a connection got. */
export function namesOf(socket: tls.TLSSocket): readonly string[] {
  const names = socket.getPeerCertificate().subjectaltname ?? ''
  return names.split(', ').map((name) => name.replace(/^(?:DNS|IP Address):/, ''))
}
