import { closeLater } from '../support/cleanup.ts'
import { type Answer, type Endpoint, type Incoming, json, type Reply } from './exchange.ts'
import type { Fault, Inside, Layer } from './faults/fault.ts'
import { listen } from './listening.ts'
import { answerRevocation, answerTokenRequest, refuseBearer } from './token-endpoint.ts'
import { createTokens } from './tokens.ts'
import { fixedWindows, type Limit, limitFields, type Now, secondsUntil } from './windows.ts'

export interface DocumentedServerOptions {
  /** Deviations. Without any, the server keeps the documented API. */
  readonly faults?: readonly Fault[]
  /** Default: the documented ones. */
  readonly limits?: Readonly<Record<Endpoint, Limit>>
  /** Serves HTTP/1.1 and HTTP/2 over TLS with the shared pair, in place of cleartext HTTP/1.1. */
  readonly tls?: boolean
  /** A refresh replaces the refresh token; default: false, it stays the same. */
  readonly rotate?: boolean
  /** How long a spent refresh token gets the same tokens again (ms); default: 0, its reuse ends the login. */
  readonly grace?: number
  /** Windows begin at whole multiples of their length; default: with the first request. */
  readonly onTheClock?: boolean
  /** The path at which tokens can be revoked; default: none. */
  readonly revocationPath?: string
  /** Default: `correct horse battery`. */
  readonly password?: string
  /** Default: the real clock. */
  readonly now?: Now
}

export interface DocumentedServer {
  /** The origin. */
  readonly url: string
  readonly password: string
  /** Requests that have arrived, the refused ones included. */
  readonly requests: number
  /** Closes the port and every connection. */
  stop(): void
}

export const DOCUMENTED_LIMITS: Readonly<Record<Endpoint, Limit>> = {
  api: { requests: 60, seconds: 60 },
  oauth: { requests: 30, seconds: 60 },
}

/**
 * Starts a server that keeps the documented API of the devices, apart from `faults`. It shares no code with Postern, so
 * that a mistake in one is not in the other. It listens on 127.0.0.1 until it is stopped or the test ends.
 */
export async function startDocumentedServer(
  options: DocumentedServerOptions = {},
): Promise<DocumentedServer> {
  const password = options.password ?? 'correct horse battery'
  const answer = createAnswer(options, password)
  let requests = 0
  const { url, stop } = await listen(options.tls ?? false, (request) => {
    requests += 1
    return answer(request)
  })
  closeLater(stop)
  return {
    url,
    password,
    get requests() {
      return requests
    },
    stop,
  }
}

/** The server from the request to its reply: count, check, answer, add the limit fields. */
function createAnswer(options: DocumentedServerOptions, password: string): Answer {
  const { faults = [], limits = DOCUMENTED_LIMITS, rotate = false, grace = 0 } = options
  const { onTheClock = false, now = Date.now } = options
  const makeWindows = faults.find(({ windows }) => windows)?.windows ?? defaultWindows
  const keyOf = faults.find(({ key }) => key)?.key ?? (({ address }: Incoming) => address)
  const tokens = createTokens({ rotate, grace }, now)

  function defaultWindows(limit: Limit) {
    return fixedWindows(limit, now, { onTheClock })
  }

  const inside: Inside = {
    tokens,
    now,
    memory: new Map(),
    windows: { api: makeWindows(limits.api, now), oauth: makeWindows(limits.oauth, now) },
    endpointOf: ({ path }) => (path === '/oauth/token' ? 'oauth' : 'api'),
    keyOf: (request) => keyOf(request, inside),
  }

  const endpoints: Answer = async (request) => {
    if (request.fields.get('host')?.length !== 1) return json(400, { error: 'one Host is needed' })
    if (request.path === '/oauth/token') return answerTokenRequest(request, tokens, password)
    if (request.path === options.revocationPath) return answerRevocation(request, tokens)
    return refuseBearer(request, tokens) ?? json(200, { name: 'device', uptime: 4711 })
  }
  const answers = layered(
    endpoints,
    faults.map(({ answer }) => answer),
    inside,
  )

  const counted: Answer = async (request) => {
    const endpoint = inside.endpointOf(request)
    const count = await inside.windows[endpoint].count(inside.keyOf(request))
    const retryAfter = { 'Retry-After': String(secondsUntil(count.closesAt, now())) }
    const reply = count.passes
      ? await answers(request)
      : json(429, { error: 'too many requests' }, retryAfter)
    const date = { Date: new Date(now()).toUTCString() }
    return withFields(reply, { ...limitFields(limits[endpoint], count), ...date })
  }
  return layered(
    counted,
    faults.map(({ exchange }) => exchange),
    inside,
  )
}

/** The first layer is the outermost. */
function layered(last: Answer, layers: readonly (Layer | undefined)[], inside: Inside): Answer {
  return layers.reduceRight<Answer>(
    (next, layer) => (layer === undefined ? next : async (request) => layer(request, next, inside)),
    last,
  )
}

function withFields(reply: Reply, fields: Reply['fields']): Reply {
  return { ...reply, fields: { ...reply.fields, ...fields } }
}
