import { Agent, request } from 'node:http'
import { Duplex } from 'node:stream'
import { HeadMemory } from '../../src/http1/head-memory.ts'
import {
  type KnownHeads,
  type ResponseEvents,
  ResponseReader,
  type ResponseRules,
} from '../../src/http1/response-reader.ts'

/** What came of some bytes. */
export interface Read {
  readonly interim: readonly (readonly [number, readonly string[]])[]
  readonly head: readonly [number, string, readonly string[]] | undefined
  readonly body: string
  /** The strict rules would have refused something of it. */
  readonly sloppy: boolean
  readonly end: 'whole' | 'whole, with more behind it' | 'open' | string
}

/** Reads an answer that comes in these pieces, behind which the connection ends. */
export function readAnswer(
  pieces: readonly Buffer[],
  method = 'GET',
  rules: ResponseRules = 'strict',
  known: KnownHeads = new HeadMemory(1),
): Read {
  const interim: [number, readonly string[]][] = []
  let head: Read['head']
  let body = ''
  let end = 'open'
  let sloppy = false
  const take = (chunk: Buffer | undefined): void => {
    body += chunk?.toString('latin1') ?? ''
  }
  const over = (how: string): void => {
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
      over(clean ? 'whole' : 'whole, with more behind it')
    },
    onFault: over,
    onSloppy() {
      sloppy = true
    },
  }
  const reading = new ResponseReader(events, known)
  reading.expect(method, rules)
  for (const piece of pieces) if (end === 'open') reading.receive(piece, piece.length, piece.length % 2 === 0)
  if (end === 'open') reading.finish(true)
  reading.close()
  return { interim, head, body, end, sloppy }
}

/** What Node's own client makes of an answer. */
export type NodesRead = Pick<Read, 'interim' | 'head' | 'body'>

/** The same as Node's own client has it; undefined where that refuses it. `lenient`: by the rules that Node calls insecure. */
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
      // To Node `100 Continue` is another event, and here none.
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
