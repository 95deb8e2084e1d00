import { Agent as HttpAgent, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Duplex } from 'node:stream'
import { groupFields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { codeOf } from '../system/setup-error.ts'
import {
  type Client,
  EVERY_REQUEST,
  placeOf,
  RESPONSE_TIMEOUT,
  startAttempt,
  type Target,
  tlsOptions,
} from './client.ts'
import type { Question } from './question.ts'
import { foldFields, type Received } from './received.ts'

/**
 * A POST goes over no connection that has been idle for longer than this (ms): the server may close it at that moment, and a client
 * must not repeat a POST by itself, because the server may have acted on it (RFC 9112 §9.3.1, RFC 9110 §9.2.2). Node's server closes
 * after 5 s, nginx after 75 s, and the shortest setting of either is 1 s.
 */
const FRESH = 500

/**
 * HTTP/1.1 over at most this many kept connections. A connection that the server closes is replaced. A GET, HEAD or OPTIONS whose
 * kept connection is closed just then is sent again, once.
 *
 * @param timeout for a whole response (ms)
 */
export function createHttp1Client(
  target: Target,
  clock: Clock,
  connections = 1,
  timeout: number = RESPONSE_TIMEOUT,
): Client {
  const { url } = target
  const secure = url.protocol === 'https:'
  const kept = { keepAlive: true, maxSockets: connections, scheduling: 'fifo' } as const
  const agent = secure ? new HttpsAgent({ ...kept, ...tlsOptions(target) }) : new HttpAgent(kept)
  const request = secure ? requestHttps : requestHttp
  const place = { agent, ...placeOf(url), setDefaultHeaders: false }
  const idleSince = new WeakMap<Duplex, number>()
  agent.on('free', (socket: Duplex) => idleSince.set(socket, clock.monotonic()))

  function closeIdle(): void {
    for (const socket of Object.values(agent.freeSockets).flatMap((sockets = []) => sockets))
      if (clock.monotonic() - (idleSince.get(socket) ?? 0) > FRESH) socket.destroy()
  }

  async function send(question: Question, mayRepeat: boolean): Promise<Received> {
    const { method, path, body } = question
    if (method === 'POST') closeIdle()
    const sent = request({ ...place, method, path, headers: headerOf(question, url) })
    let closedByServer = false
    const attempt = startAttempt(clock, timeout, (error) => sent.destroy(error))
    sent.once('response', (response) => {
      const { statusCode: status = 0, rawHeaders } = response
      attempt.receive({ status, fields: foldFields(groupFields(rawHeaders, 'lower')) }, response)
    })
    sent.on('error', (error: Error) => {
      closedByServer = sent.reusedSocket && codeOf(error) === 'ECONNRESET'
      attempt.fail(error)
    })
    sent.end(body)
    const received = await attempt.received
    return mayRepeat && closedByServer && received.status === 0 ? send(question, false) : received
  }

  return { send: (question) => send(question, question.method !== 'POST'), close: () => agent.destroy() }
}

/** The fields as Node takes them to send them in this order and with every repeat. */
function headerOf({ fields, hosts, body }: Question, url: URL): string[] {
  const host = (hosts ?? [url.host]).flatMap((value) => ['Host', value])
  const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]
  return [...host, ...EVERY_REQUEST, ...fields, ...length]
}
