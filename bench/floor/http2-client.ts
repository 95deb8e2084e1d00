import { performServerHandshake, type ServerHttp2Stream } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { RequestHead } from '../../src/http/exchange.ts'
import type { Fields } from '../../src/http/fields.ts'
import { requestHead } from '../../test/support/exchange.ts'
import { createDeadline } from './deadline.ts'
import type { Floor } from './floor.ts'
import { type DeviceResponse, type FloorClient, FloorExchange } from './floor-exchange.ts'
import { IDLE_TIMEOUT, MAX_FIELDS } from './http1-client.ts'
import { fieldsForClient, readResponse, rewriteHttp2Request } from './lines.ts'

/** Serves the streams of one connection. */
export function serveHttp2(floor: Floor, socket: TLSSocket): void {
  const session = performServerHandshake(socket)
  const idle = floor.has('deadlines') ? createDeadline(IDLE_TIMEOUT, () => session.destroy()) : undefined
  const { remoteAddress: peer = '', localPort = 0 } = socket
  session.on('error', () => {})
  session.on('close', () => idle?.close())
  session.on('stream', (stream, _headers, _flags, raw: string[]) => {
    stream.on('error', () => {})
    idle?.restart()
    const client = new Http2Client(floor, stream)
    if (!floor.strict) {
      const { authorization, rewritten } = rewriteHttp2Request(raw)
      floor.pass(new FloorExchange(client, authorization, rewritten, undefined))
      return
    }
    const head = describe(raw, peer, localPort)
    if (head.fields.length > 2 * MAX_FIELDS) client.cut()
    else floor.pass(new FloorExchange(client, head.survey.authorization[0] ?? '', '', head))
  })
}

class Http2Client implements FloorClient {
  readonly #floor: Floor
  readonly #stream: ServerHttp2Stream

  constructor(floor: Floor, stream: ServerHttp2Stream) {
    this.#floor = floor
    this.#stream = stream
  }

  relay(text: string): void {
    const { status, fields, body } = readResponse(text)
    this.#respond(status, fieldsForClient(fields, this.#floor.limitFields()), body)
  }

  respond({ status, fields, body }: DeviceResponse): void {
    this.#respond(status, fields, body)
  }

  cut(): void {
    this.#stream.close()
  }

  #respond(status: number, fields: Fields, body: string): void {
    if (this.#stream.destroyed) return
    const raw = [':status', String(status)]
    for (let i = 0; i + 1 < fields.length; i += 2)
      raw.push((fields[i] ?? '').toLowerCase(), fields[i + 1] ?? '')
    this.#stream.respond(raw)
    this.#stream.end(body, 'latin1')
  }
}

function describe(raw: Fields, peer: string, localPort: number): RequestHead {
  // The pseudo-headers come first (RFC 9113 §8.3).
  let start = 0
  while (raw[start]?.startsWith(':')) start += 2
  const fields = raw.slice(start)
  const pseudoHeader = (name: string): string => raw[raw.indexOf(name) + 1] ?? ''
  const [method = '', target = '', authority] = [':method', ':path', ':authority'].map(pseudoHeader)
  const from = { version: '2', secure: true, peer, localPort, endsWithHead: true } as const
  return requestHead({ ...from, method, target, authority, fields })
}
