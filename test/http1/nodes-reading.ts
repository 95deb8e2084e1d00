import { createServer, type IncomingMessage, METHODS, type ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import type { Http1RequestHead } from '../../src/http1/request-head.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { readInPieces } from './intake.ts'

/** A request as Node's parser reads it in its strictest mode. */
interface NodesReading {
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
interface NodesRow {
  readonly messages: readonly NodesReading[]
  /** The error code for the bytes after them that Node refuses, or undefined where it waits for more. */
  readonly fault: string | undefined
}

/** How Node reads these bytes, which must not be more than one message; undefined where it refuses them. */
async function readByNode(bytes: Buffer): Promise<NodesReading | undefined> {
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

/** How the sidecar and Node read the same bytes. */
interface Comparison {
  /** Whether the sidecar accepted the first message as a request. */
  readonly accepted: boolean
  /** Where Node reads the message differently. */
  readonly disagreements: readonly string[]
}

/**
 * Compares the sidecar's parser with Node's. The sidecar must not accept bytes that Node refuses, reads as another
 * message, or ends at another byte (request smuggling). The gate refuses methods that Node does not know, and 8-bit
 * bytes in the target, so Node gets such a message with a known method and ASCII bytes instead.
 */
export async function compareWithNode(bytes: Buffer): Promise<Comparison> {
  const { messages, left, fault } = await readInPieces([bytes], { most: 1 })
  const [ours] = messages
  if (ours === undefined) return { accepted: false, disagreements: [] }
  const { head, body, whole } = ours
  const method = METHODS.includes(head.method) ? head.method : 'PUT'
  const target = head.target.replaceAll(/[\x80-\xff]/g, 'x')
  const read = withStart(bytes.subarray(0, bytes.length - left), head, `${method} ${target} `)
  // The sidecar drops trailers, so it does not matter whether Node accepts them.
  const mayHaveTrailers = whole && head.framing === 'chunked'
  const nodes =
    (await readByNode(read)) ?? (mayHaveTrailers ? await readByNode(withoutTrailers(read)) : undefined)
  if (nodes === undefined) {
    // Both refuse a broken body.
    return { accepted: true, disagreements: fault === undefined ? ['Node refuses it'] : [] }
  }
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ['method', method, nodes.method],
    ['target', target, nodes.target],
    ['version', head.version, nodes.version],
    ['fields', JSON.stringify(head.fields), JSON.stringify(nodes.fields)],
    ['leaving HTTP', head.leavesHttp, nodes.event === 'upgrade' || nodes.event === 'connect'],
    ['expectation', head.expects, nodes.event.startsWith('check')],
    ['body', whole && !head.leavesHttp ? body : undefined, head.leavesHttp ? undefined : nodes.body],
    // The sidecar must not keep a connection that Node would close.
    ['persistence', head.persists && !head.leavesHttp && !nodes.persists, false],
  ]
  return {
    accepted: true,
    disagreements: pairs
      .filter(([, one, other]) => one !== other)
      .map(([what, one, other]) => `${what}: ${String(one)} here, ${String(other)} for Node`),
  }
}

/** The message with another method and target. Only line ends may precede them. */
function withStart(message: Buffer, { method, target }: Http1RequestHead, start: string): Buffer {
  return Buffer.from(
    message.toString('latin1').replace(`${method} ${target} `, () => start),
    'latin1',
  )
}

const LAST_CHUNK_AND_TRAILERS = /(\r\n0+(?:;[^\r\n]*)?\r\n)(?:[^\r\n]+:[^\r\n]*\r\n)+\r\n$/

function withoutTrailers(message: Buffer): Buffer {
  return Buffer.from(message.toString('latin1').replace(LAST_CHUNK_AND_TRAILERS, '$1\r\n'), 'latin1')
}
