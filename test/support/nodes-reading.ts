import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'

/** A request as Node's parser, as strict as it goes, understands it. */
export interface NodesReading {
  readonly event: string
  readonly method: string | undefined
  readonly target: string | undefined
  readonly version: string
  readonly fields: readonly string[]
  readonly persists: boolean
  /** Latin-1. Undefined where the end of the message was not reached. */
  readonly body: string | undefined
}

const EVENTS = ['request', 'checkContinue', 'checkExpectation', 'upgrade', 'connect']

/** What Node makes of a row of messages. */
export interface NodesRow {
  readonly messages: readonly NodesReading[]
  /** The code of what it refuses behind them, or undefined where it waits for more. */
  readonly fault: string | undefined
}

/** What Node makes of these bytes, which are to be no more than one message; undefined where it refuses them. */
export async function readByNode(bytes: Buffer): Promise<NodesReading | undefined> {
  const { messages, fault } = await readRowByNode(bytes)
  const [first] = messages
  return first?.body === undefined && fault !== undefined ? undefined : first
}

/** What Node makes of these bytes: every message, and what it refuses behind them. */
export async function readRowByNode(bytes: Buffer): Promise<NodesRow> {
  const server = createServer({
    maxHeaderSize: 1 << 22,
    requireHostHeader: false,
    insecureHTTPParser: false,
    // RFC 9110 §7.8: other offers may be ignored, and any in HTTP/1.0 has to be. Left alone, Node takes every one.
    shouldUpgradeCallback: ({ httpVersion, headers }) =>
      httpVersion === '1.1' && /(?:^|,)[ \t]*websocket[ \t]*(?:,|$)/i.test(headers.upgrade ?? ''),
    connectionsCheckingInterval: 1 << 30,
  })
  server.maxHeadersCount = 0
  const connection = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  connection.on('error', () => {})
  let fault: string | undefined
  server.on('clientError', (error: NodeJS.ErrnoException) => {
    fault ??= error.code ?? error.message
  })
  const readings: (() => NodesReading)[] = []
  for (const event of EVENTS) {
    server.on(event, (request: IncomingMessage, second: ServerResponse | Duplex) => {
      let body = ''
      let whole = false
      request.on('error', () => {})
      request.on('data', (piece: Buffer) => {
        body += piece.toString('latin1')
      })
      request.once('end', () => {
        whole = true
      })
      readings.push(() => ({
        event,
        method: request.method,
        target: request.url,
        version: request.httpVersion,
        fields: request.rawHeaders,
        persists: 'shouldKeepAlive' in second && second.shouldKeepAlive === true,
        body: whole ? body : undefined,
      }))
    })
  }
  server.emit('connection', connection)
  connection.push(bytes)
  // All of the bytes have been parsed by then.
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate)
  const messages = readings.map((reading) => reading())
  connection.destroy()
  return { messages, fault }
}
