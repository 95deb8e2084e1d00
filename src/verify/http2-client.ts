import type { ClientHttp2Stream, IncomingHttpHeaders, IncomingHttpStatusHeader } from 'node:http2'
import { setTimeout as pause } from 'node:timers/promises'
import { groupFields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import type { Answer } from './answer.ts'
import {
  type Client,
  EVERY_REQUEST,
  type Exchange,
  failureOf,
  type Head,
  RESPONSE_TIMEOUT,
  startExchange,
} from './exchange.ts'
import { CLOSED, NOT_OFFERED, openSession, type Session } from './http2-session.ts'
import { foldFields } from './observation.ts'
import type { Question } from './question.ts'
import type { Target } from './target.ts'

/** A request fails at this many refusals of its stream without a response to any other request between them. */
const MOST_REFUSALS = 5

/** The pause after the first of these refusals (ms). It doubles with each. */
const FIRST_PAUSE = 10

/**
 * HTTP/2 over one connection at a time; or, in words, why there is none: the server does not offer it by ALPN (RFC 9113 §3.2),
 * refuses the connection, is not trusted or does not answer in time. A request that the server did not process (REFUSED_STREAM, or
 * above the last stream of a GOAWAY) is sent again, on a new connection if the old one takes no more (RFC 9113 §6.8, §8.7).
 *
 * @param timeout for a connection, and for each whole response with its repeats (ms)
 */
export async function createHttp2Client(
  target: Target,
  clock: Clock,
  timeout: number = RESPONSE_TIMEOUT,
): Promise<Client | string> {
  if (target.url.protocol !== 'https:') return 'the server does not offer it without TLS'
  const connections = createConnections(target, timeout)
  try {
    await connections.current()
  } catch (error) {
    return error === NOT_OFFERED ? NOT_OFFERED.message : failureOf(error, undefined, timeout)
  }
  /** Of all requests. While it grows, the server makes progress. */
  let responses = 0

  async function send(question: Question): Promise<Answer> {
    let stream: ClientHttp2Stream | undefined
    let over = false
    const exchange = startExchange(clock, timeout, () => {
      over = true
      stream?.destroy()
    })

    /** @param before how many responses there were at the last refusal of this request, or at its start */
    async function attempt(refusals: number, before: number): Promise<void> {
      const session = await connections.current()
      if (over) return
      // A GOAWAY may have come with the SETTINGS.
      stream = session.isOpen() ? open(session, question) : undefined
      if (stream !== undefined && (await headOrRefusal(session, stream, exchange))) {
        responses += 1
        return
      }
      const inVain = responses === before ? refusals + 1 : 1
      if (inVain === MOST_REFUSALS)
        throw new Error(`the server refused the HTTP/2 stream ${MOST_REFUSALS} times`)
      const until = responses
      if (session.isOpen()) await pause(FIRST_PAUSE * 2 ** (inVain - 1))
      if (!over) await attempt(inVain, until)
    }

    void attempt(0, responses).catch(exchange.fail)
    return exchange.answer
  }

  return { send, close: connections.close }
}

/** The connection that takes new streams. There is one at most; those that the server is closing may still finish theirs. */
function createConnections(target: Target, timeout: number) {
  const opened = new Set<Session>()
  let latest: Promise<Session> | undefined
  let closed = false

  async function open(): Promise<Session> {
    const session = await openSession(target, timeout)
    opened.add(session)
    session.http2.once('close', () => opened.delete(session))
    if (closed) session.http2.destroy()
    return session
  }

  return {
    /** Rejects like `openSession`. */
    async current(): Promise<Session> {
      if (closed) throw CLOSED
      const known = latest
      const session = await known?.catch(() => undefined)
      if (session?.isOpen() === true) return session
      // The first that finds it closed connects, for all.
      if (latest === known) latest = open()
      return latest as Promise<Session>
    },
    close(): void {
      closed = true
      for (const { http2 } of opened) http2.destroy()
    },
  }
}

function open({ http2 }: Session, { method, path, fields, body }: Question): ClientHttp2Stream {
  const stream = http2.request({
    ...groupFields([...EVERY_REQUEST, ...fields], 'lower'),
    ':method': method,
    ':path': path,
  })
  stream.end(body)
  return stream
}

/** True when the head has arrived, false when the server did not process the request. Rejects if neither is so. */
function headOrRefusal(session: Session, stream: ClientHttp2Stream, exchange: Exchange): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  let failure: unknown
  stream.on('error', (error) => {
    failure = error
  })
  // Of a stream that is closed without an error code, Node tells nothing else.
  stream.once('close', () => {
    if (session.refused(stream)) resolve(false)
    else reject(failure ?? (session.isOpen() ? RESET : CLOSED))
  })
  // From here on, the body tells how the stream ends.
  stream.once('response', (headers) => {
    exchange.receive(headOf(headers), stream)
    resolve(true)
  })
  return promise
}

const RESET = Object.assign(new Error('stream reset'), { code: 'ERR_HTTP2_STREAM_ERROR' })

function headOf({ ':status': status = 0, ...fields }: IncomingHttpHeaders & IncomingHttpStatusHeader): Head {
  return { status, fields: foldFields(fields) }
}
