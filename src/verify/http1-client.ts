import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { groupFields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { codeOf } from '../system/setup-error.ts'
import type { Answer } from './answer.ts'
import {
  type Client,
  hostOf,
  noAnswer,
  portOf,
  RESPONSE_TIMEOUT,
  startOfText,
  stopwatch,
  tlsOptions,
} from './client.ts'
import { foldFields } from './observation.ts'
import type { VerifyOptions } from './options.ts'
import type { Question } from './question.ts'

/** HTTP/1.1 over at most this many kept connections. A connection that the server closes is replaced. */
export function createHttp1Client(
  options: Pick<VerifyOptions, 'url' | 'tls'>,
  clock: Clock,
  connections = 1,
): Client {
  const { url } = options
  const secure = url.protocol === 'https:'
  const kept = { keepAlive: true, maxSockets: connections, scheduling: 'fifo' } as const
  const agent = secure ? new HttpsAgent({ ...kept, ...tlsOptions(options) }) : new HttpAgent(kept)
  const request = secure ? requestHttps : requestHttp
  const place = { agent, host: hostOf(url), port: portOf(url), setDefaultHeaders: false }

  function sendOnce(question: Question, mayRepeat: boolean): Promise<Answer> {
    const watch = stopwatch(clock)
    const headers = headerOf(question, url)
    return new Promise((resolve) => {
      const { method, path, body } = question
      const signal = AbortSignal.timeout(RESPONSE_TIMEOUT)
      const sent = request({ ...place, method, path, headers, signal }, (response) => {
        const times = watch.arrived()
        startOfText(response).then(
          (text) => resolve({ ...headOf(response), body: text, failure: undefined, ...times }),
          (error: unknown) => resolve(noAnswer(error, watch)),
        )
      })
      sent.once('error', (error: Error) => {
        // The server may close a kept connection just when it is used again (RFC 9112 §9.3.1).
        if (mayRepeat && sent.reusedSocket && codeOf(error) === 'ECONNRESET')
          resolve(sendOnce(question, false))
        else resolve(noAnswer(signal.aborted ? signal.reason : error, watch))
      })
      sent.end(body)
    })
  }

  return { send: (question) => sendOnce(question, true), close: () => agent.destroy() }
}

/** The fields as Node takes them to send them in this order and with every repeat. */
function headerOf({ fields, hosts, body }: Question, url: URL): string[] {
  const host = (hosts ?? [url.host]).flatMap((value) => ['Host', value])
  const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]
  return [...host, ...fields, ...length]
}

function headOf({ statusCode = 0, rawHeaders }: IncomingMessage): Pick<Answer, 'status' | 'fields'> {
  return { status: statusCode, fields: foldFields(groupFields(rawHeaders, 'lower')) }
}
