import { once } from 'node:events'
import {
  type ClientHttp2Session,
  connect,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { groupFields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import type { Answer } from './answer.ts'
import { type Client, RESPONSE_TIMEOUT } from './client.ts'
import { failureOf, type Head, startExchange } from './exchange.ts'
import { foldFields } from './observation.ts'
import type { Question } from './question.ts'
import { type Target, tlsOptions } from './target.ts'

/**
 * HTTP/2 over one connection; or, in words, why there is none: the server does not offer it by ALPN (RFC 9113 §3.2), refuses the
 * connection, is not trusted or does not answer in time.
 *
 * @param timeout for the connection, and then for each whole response (ms)
 */
export async function createHttp2Client(
  target: Target,
  clock: Clock,
  timeout: number = RESPONSE_TIMEOUT,
): Promise<Client | string> {
  const { url } = target
  if (url.protocol !== 'https:') return 'the server does not offer it without TLS'
  const socket = connectTls({ ...tlsOptions(target), ALPNProtocols: ['h2', 'http/1.1'] })
  const problem = await problemOf(socket, timeout)
  if (problem !== undefined) {
    socket.destroy()
    return problem
  }
  const session = connect(url.origin, { createConnection: () => socket })
  // Every stream of a session that fails reports the failure itself.
  session.on('error', () => undefined)
  return {
    send: (question) => send(session, question, clock, timeout),
    close: () => session.destroy(),
  }
}

/** Why a socket cannot carry HTTP/2; undefined if it can. */
async function problemOf(socket: TLSSocket, timeout: number): Promise<string | undefined> {
  // A socket that is given up may still fail.
  socket.on('error', () => undefined)
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(timeout) })
  } catch (error) {
    return failureOf(error, undefined, timeout)
  }
  return socket.alpnProtocol === 'h2' ? undefined : 'the server does not offer it'
}

async function send(
  session: ClientHttp2Session,
  { method, path, fields, body }: Question,
  clock: Clock,
  timeout: number,
): Promise<Answer> {
  const exchange = startExchange(clock, timeout, () => stream?.destroy())
  const stream = open()
  return exchange.answer

  function open() {
    try {
      const opened = session.request({
        ...groupFields(fields, 'lower'),
        ':method': method,
        ':path': path,
      })
      opened.on('error', exchange.fail)
      // Of a stream that is closed without an error code, Node tells nothing else. From the head on, its body tells how it ends.
      const onClose = (): void => exchange.fail(session.destroyed || session.closed ? CLOSED : RESET)
      opened.once('close', onClose)
      opened.once('response', (headers) => {
        opened.off('close', onClose)
        exchange.receive(headOf(headers), opened)
      })
      opened.end(body)
      return opened
    } catch (error) {
      exchange.fail(error)
      return undefined
    }
  }
}

const RESET = Object.assign(new Error('stream reset'), { code: 'ERR_HTTP2_STREAM_ERROR' })
const CLOSED = Object.assign(new Error('session closed'), { code: 'ERR_HTTP2_SESSION_ERROR' })

function headOf({ ':status': status = 0, ...fields }: IncomingHttpHeaders & IncomingHttpStatusHeader): Head {
  return { status, fields: foldFields(fields) }
}
