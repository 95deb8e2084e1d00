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

/** What Node makes of these bytes, which are to be no more than one message; undefined where it refuses them. */
export function readByNode(bytes: Buffer): Promise<NodesReading | undefined> {
  return new Promise((resolve) => {
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
    server.on('clientError', () => finish(undefined))
    for (const event of EVENTS) {
      server.on(event, (request: IncomingMessage, second: ServerResponse | Duplex) => {
        let body = ''
        const reading = (whole: boolean): NodesReading => ({
          event,
          method: request.method,
          target: request.url,
          version: request.httpVersion,
          fields: request.rawHeaders,
          persists: 'shouldKeepAlive' in second && second.shouldKeepAlive === true,
          body: whole ? body : undefined,
        })
        request.on('error', () => {})
        request.on('data', (piece: Buffer) => {
          body += piece.toString('latin1')
        })
        request.once('end', () => finish(reading(true)))
        // What else there is has been parsed by then.
        setImmediate(() => setImmediate(() => finish(reading(false))))
      })
    }
    function finish(reading: NodesReading | undefined): void {
      connection.destroy()
      resolve(reading)
    }
    server.emit('connection', connection)
    connection.push(bytes)
  })
}
