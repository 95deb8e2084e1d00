import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
} from 'node:http2'
import { connect as connectTls } from 'node:tls'
import { groupFields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import type { Answer } from './answer.ts'
import { type Client, noAnswer, RESPONSE_TIMEOUT, startOfText, stopwatch, tlsOptions } from './client.ts'
import { foldFields } from './observation.ts'
import type { VerifyOptions } from './options.ts'
import type { Question } from './question.ts'

/** HTTP/2 over one connection; undefined if the server does not offer it by ALPN (RFC 9113 §3.2). */
export async function createHttp2Client(
  options: Pick<VerifyOptions, 'url' | 'tls'>,
  clock: Clock,
): Promise<Client | undefined> {
  const { url } = options
  if (url.protocol !== 'https:') return undefined
  const socket = connectTls({ ...tlsOptions(options), ...serverName(url), ALPNProtocols: ['h2', 'http/1.1'] })
  try {
    await once(socket, 'secureConnect', timeLimit())
  } catch {
    socket.destroy()
    return undefined
  }
  if (socket.alpnProtocol !== 'h2') {
    socket.destroy()
    return undefined
  }
  const session = connect(url.origin, { createConnection: () => socket })
  // Every stream of a session that fails reports the failure itself.
  session.on('error', () => undefined)
  return { send: (question) => send(session, question, clock), close: () => session.destroy() }
}

/** Of a stream that is closed without a response, Node tells nothing else. */
function timeLimit(): { readonly signal: AbortSignal } {
  return { signal: AbortSignal.timeout(RESPONSE_TIMEOUT) }
}

function serverName({ hostname }: URL): { readonly servername?: string } {
  return /^[\d.]+$|^\[/.test(hostname) ? {} : { servername: hostname }
}

async function send(session: ClientHttp2Session, question: Question, clock: Clock): Promise<Answer> {
  const { method, path, fields, body } = question
  const watch = stopwatch(clock)
  try {
    const stream = session.request({ ...groupFields(fields, 'lower'), ':method': method, ':path': path })
    stream.setTimeout(RESPONSE_TIMEOUT, () => stream.destroy(new DOMException('', 'TimeoutError')))
    stream.end(body)
    return await answerOn(stream, watch)
  } catch (error) {
    return noAnswer(error, watch)
  }
}

async function answerOn(stream: ClientHttp2Stream, watch: ReturnType<typeof stopwatch>): Promise<Answer> {
  const [headers] = (await once(stream, 'response', timeLimit())) as [
    IncomingHttpHeaders & { ':status'?: number },
  ] // Node's event
  const times = watch.arrived()
  const { ':status': status = 0, ...fields } = headers
  return { status, fields: foldFields(fields), body: await startOfText(stream), failure: undefined, ...times }
}
