import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { type Target, tlsOptions } from './target.ts'

/** One HTTP/2 connection, whose SETTINGS have arrived: Node opens no more streams at once than they allow. */
export interface Session {
  readonly http2: ClientHttp2Session
  /** Whether it takes new streams. */
  isOpen(): boolean
  /** Whether the server has told that it did not process a stream, so that it may be repeated (RFC 9113 §8.7). */
  refused(stream: ClientHttp2Stream): boolean
}

export const CLOSED: Error = Object.assign(new Error('session closed'), { code: 'ERR_HTTP2_SESSION_ERROR' })

/** The server does not name HTTP/2 by ALPN (RFC 9113 §3.2). */
export const NOT_OFFERED: Error = new Error('the server does not offer it')

/**
 * Connects and waits for the SETTINGS of the server. Rejects with an error of the network or of TLS, `NOT_OFFERED`, `CLOSED`, or an
 * `AbortError` when the time is over.
 *
 * @param timeout ms
 */
export async function openSession(target: Target, timeout: number): Promise<Session> {
  const signal = AbortSignal.timeout(timeout)
  const socket = connectTls({ ...tlsOptions(target), ALPNProtocols: ['h2', 'http/1.1'] })
  // A socket that is given up may still fail.
  socket.on('error', () => undefined)
  try {
    await once(socket, 'secureConnect', { signal })
    if (socket.alpnProtocol !== 'h2') throw NOT_OFFERED
    return await sessionOver(socket, target, signal)
  } catch (error) {
    socket.destroy()
    throw error
  }
}

async function sessionOver(socket: TLSSocket, { url }: Target, signal: AbortSignal): Promise<Session> {
  const http2 = connect(url.origin, { createConnection: () => socket })
  // Every stream of a session that fails reports the failure itself.
  http2.on('error', () => undefined)
  let lastProcessed = Number.POSITIVE_INFINITY
  http2.on('goaway', (_code: number, last: number) => {
    lastProcessed = Math.min(lastProcessed, last)
  })
  const over = new AbortController()
  const closed = once(http2, 'close', { signal: over.signal }).then(() => Promise.reject(CLOSED))
  try {
    await Promise.race([once(http2, 'remoteSettings', { signal }), closed])
  } finally {
    over.abort()
    closed.catch(() => undefined)
  }
  return {
    http2,
    isOpen: () => !http2.closed && !http2.destroyed,
    refused: ({ rstCode, id = 0 }) => rstCode === constants.NGHTTP2_REFUSED_STREAM || id > lastProcessed,
  }
}
