import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import { nextTurn } from '../../src/system/clock.ts'

/** A request as Node's parser reads it in its strictest mode. */
export interface NodesReading {
  readonly event: string
  readonly method: string | undefined
  readonly target: string | undefined
  readonly version: string
  readonly fields: readonly string[]
  readonly persists: boolean
  /** Latin-1. Undefined where the message is incomplete. */
  readonly body: string | undefined
}

const EVENTS = ['request', 'checkContinue', 'checkExpectation', 'upgrade', 'connect']

/** How Node reads a sequence of messages. */
export interface NodesRow {
  readonly messages: readonly NodesReading[]
  /** The error code for the bytes after them that Node refuses, or undefined where it waits for more. */
  readonly fault: string | undefined
}

/** How Node reads these bytes, which must not be more than one message; undefined where it refuses them. */
export async function readByNode(bytes: Buffer): Promise<NodesReading | undefined> {
  const { messages, fault } = await readRowByNode(bytes)
  const [first] = messages
  return first?.body === undefined && fault !== undefined ? undefined : first
}

/** How Node reads these bytes: every message, and why it refuses the bytes after them. */
export async function readRowByNode(bytes: Buffer): Promise<NodesRow> {
  const server = createServer({
    maxHeaderSize: 1 << 22,
    requireHostHeader: false,
    insecureHTTPParser: false,
    // RFC 9110 §7.8: a server may ignore other offers and must ignore those of HTTP/1.0. Node's default accepts all.
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
  // After three turns Node has parsed all bytes.
  for (let turn = 0; turn < 3; turn += 1) await nextTurn()
  const messages = readings.map((reading) => reading())
  connection.destroy()
  return { messages, fault }
}
