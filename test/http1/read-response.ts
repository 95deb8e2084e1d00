import { Agent, request } from 'node:http'
import { Duplex } from 'node:stream'
import { HeadMemory } from '../../src/http1/head-memory.ts'
import {
  type KnownHeads,
  type ResponseEvents,
  ResponseReader,
  type ResponseRules,
} from '../../src/http1/response-reader.ts'

/** The reading of some bytes. */
export interface Read {
  readonly interim: readonly (readonly [number, readonly string[]])[]
  readonly head: readonly [number, string, readonly string[]] | undefined
  readonly body: string
  /** Whether the strict rules refuse a part of it. */
  readonly tolerated: boolean
  readonly end: 'whole' | 'whole, with more after it' | 'open' | string
}

/** What an earlier read left behind the bytes of a piece: a reader that looks at it finds an end that has not come. */
const STALE = Buffer.from('\n\r\n\r\n0\r\n\r\n')

/** Reads a response that arrives in these pieces, after which the connection ends. */
export function readResponse(
  pieces: readonly Buffer[],
  method = 'GET',
  rules: ResponseRules = 'strict',
  known: KnownHeads = new HeadMemory(1),
): Read {
  const interim: [number, readonly string[]][] = []
  let head: Read['head']
  let body = ''
  let end = 'open'
  let tolerated = false
  const take = (chunk: Buffer | undefined): void => {
    body += chunk?.toString('latin1') ?? ''
  }
  const finish = (how: string): void => {
    end = end === 'open' ? how : `${end} and ${how}`
  }
  const events: ResponseEvents = {
    onInterim: ({ status, fields }) => interim.push([status, fields]),
    onHead(found) {
      head = [found.status, found.reason, found.fields]
    },
    onBody: take,
    onWhole(last, clean) {
      take(last)
      finish(clean ? 'whole' : 'whole, with more after it')
    },
    onFault: finish,
    onMalformed() {
      tolerated = true
    },
  }
  const reading = new ResponseReader(events, known)
  reading.expect(method, rules)
  for (const [i, piece] of pieces.entries()) {
    const bytes = i % 2 === 0 ? Buffer.concat([piece, STALE]) : piece
    if (end === 'open')
      reading.receive(bytes, piece.length, piece.length % 2 === 0 ? piece.length : Number.POSITIVE_INFINITY)
  }
  if (end === 'open') reading.finish(true)
  reading.close()
  return { interim, head, body, end, tolerated }
}

/** The reading of a response by the client of Node. */
export type NodesRead = Pick<Read, 'interim' | 'head' | 'body'>

/** Reads a response with the client of Node; undefined if Node refuses it. `lenient`: with `insecureHTTPParser`. */
export function readByNode(
  bytes: Buffer,
  {
    method = 'GET',
    lenient = false,
  }: { readonly method?: string | undefined; readonly lenient?: boolean } = {},
): Promise<NodesRead | undefined> {
  const interim: [number, readonly string[]][] = []
  return new Promise((resolve) => {
    const device = new Duplex({
      read() {},
      write(_chunk, _encoding, done) {
        done()
        this.push(bytes)
        this.push(null)
      },
    })
    const agent = Object.assign(new Agent(), { createConnection: () => device })
    const asked = request({ agent, method, maxHeaderSize: 128 * 1024, insecureHTTPParser: lenient })
    asked.on('error', () => resolve(undefined))
    asked.on('upgrade', () => resolve(undefined))
    asked.on('information', ({ statusCode, rawHeaders }) => {
      // Node reports `100 Continue` as another event, and the sidecar does not report it.
      if (statusCode !== 100) interim.push([statusCode, rawHeaders])
    })
    asked.on('response', (response) => {
      let body = ''
      response.setEncoding('latin1')
      response.on('data', (text: string) => {
        body += text
      })
      response.on('error', () => {})
      response.on('close', () => {
        const { statusCode = 0, statusMessage = '', rawHeaders } = response
        const head = [statusCode, statusMessage, rawHeaders] as const
        resolve(response.complete ? { interim, head, body } : undefined)
      })
    })
    asked.end()
  })
}
