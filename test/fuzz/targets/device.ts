import fc from 'fast-check'
import { fieldValues } from '../../../src/http/fields.ts'
import { connect } from '../../support/client.ts'
import { createHttp1Reader } from '../../support/http1-reader.ts'
import { BrokenTransfer, type Head, type Response } from '../../support/message.ts'
import { ACCESS, type Case, type Setting } from '../case.ts'
import { deviceResponse } from '../device-grammar.ts'
import { inPieces, mutated } from '../mutation.ts'
import { faultsOf, readResponses } from '../responses.ts'
import { CLEARTEXT, ENCRYPTED, type Scene, type Target } from '../target.ts'
import { play } from '../wire.ts'

const ending = fc.oneof(
  { weight: 6, arbitrary: fc.constant('end' as const) },
  { weight: 2, arbitrary: fc.constant('reset' as const) },
  { weight: 1, arbitrary: fc.constant('open' as const) },
)

/** What a client got: a response that looks complete, or a broken transfer. */
type Result = Response | 'broken'

/** The meaning of the device's bytes to a strict reader. */
type Expected =
  | { readonly kind: 'whole'; readonly status: number; readonly body: Buffer }
  | { readonly kind: 'cut' }
  | { readonly kind: 'malformed' }

/** A chunk of size zero. For the tolerant parser it ends the body, even if bytes after it are missing. */
const LAST_CHUNK = /\n0+[ \t]*(?:;[^\n]*)?\r*\n/

function expectedFrom({ writes, ending, ask }: Case, parser: Setting['parser']): Expected {
  let head: Head | undefined
  let whole = false
  const chunks: Buffer[] = []
  const reader = createHttp1Reader(() => ({
    method: whole ? undefined : ask === 'HEAD' ? 'HEAD' : 'GET',
    inform() {},
    begin(final) {
      head = final
    },
    data: (chunk) => chunks.push(chunk),
    finish() {
      whole = true
    },
  }))
  try {
    reader.feed(Buffer.from(writes.join(''), 'latin1'))
    if (ending === 'end') reader.close()
  } catch {
    // Bytes after a complete response do not matter.
    if (!whole) return { kind: 'malformed' }
  }
  // The tolerant parser may find a head where this strict reader finds none.
  if (head === undefined) return { kind: 'malformed' }
  if (!whole && parser === 'tolerant' && LAST_CHUNK.test(writes.join(''))) return { kind: 'malformed' }
  if (!whole) return { kind: 'cut' }
  return { kind: 'whole', status: head.status, body: Buffer.concat(chunks) }
}

/** Whether the device sent this field: it begins after a line feed, never after a bare CR or a NUL. */
function wasSent(name: string, { writes }: Case): boolean {
  const lines = writes.join('').toLowerCase().split('\n')
  return lines.some((line) => line.replaceAll(/[ \t]+:/g, ':').startsWith(`${name.toLowerCase()}:`))
}

const SIDECAR_FIELDS = new Set([
  ...[
    'x-ratelimit-limit',
    'x-ratelimit-remaining',
    'x-ratelimit-reset',
    'via',
    'date',
    'connection',
    'keep-alive',
  ],
  ...[
    'transfer-encoding',
    'content-length',
    'content-type',
    'retry-after',
    'proxy-status',
    'www-authenticate',
  ],
])

function faultsIn(got: Result, item: Case, parser: Setting['parser']): string[] {
  if (got === 'broken') return []
  const own = fieldValues(got.fields, 'proxy-status').length > 0
  if (own) return faultsOf(got, true)
  const expected = expectedFrom(item, parser)
  const faults: string[] = []
  if (expected.kind === 'cut')
    faults.push(`an incomplete response looks complete: ${got.status} ${got.body.length} bytes`)
  if (expected.kind === 'whole') {
    if (got.status !== expected.status) faults.push(`${got.status} instead of ${expected.status}`)
    if (!got.body.equals(expected.body))
      faults.push(`another body: ${got.body.length} bytes of ${expected.body.length}`)
  }
  for (let i = 0; i < got.fields.length; i += 2) {
    const name = got.fields[i] ?? ''
    if (!SIDECAR_FIELDS.has(name.toLowerCase()) && !wasSent(name, item))
      faults.push(`a field that the device did not send: ${name}`)
  }
  if (got.status === 101 && item.ask !== 'upgrade') faults.push('an unsolicited 101')
  if (fieldValues(got.fields, 'x-ratelimit-limit').join() !== '1000000')
    faults.push('wrong X-RateLimit fields')
  return faults
}

const UPGRADE = [
  ...[
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZQ==',
  ],
]

async function askHttp1({ bed }: Scene, path: string, ask: Case['ask'], faults: string[]): Promise<Result> {
  const lines = [
    `${ask === 'upgrade' || ask === undefined ? 'GET' : ask} ${path} HTTP/1.1`,
    ...['Host: x', `Authorization: Bearer ${ACCESS}`],
    ...(ask === 'upgrade' ? UPGRADE : ['Connection: close']),
    ...(ask === 'POST' ? ['Content-Length: 5'] : []),
  ]
  const head = bed.bytesOf(`${lines.join('\r\n')}\r\n\r\n${ask === 'POST' ? 'hello' : ''}`)
  const received = await play(bed.served.url, { writes: [head], ending: ask === 'upgrade' ? 'end' : 'open' })
  if (received.end === 'timeout') faults.push('the connection was never closed')
  const { responses, fault } = readResponses(received.bytes, ask === 'HEAD')
  const [got] = responses
  if (fault !== undefined && fault !== 'the last response is incomplete') faults.push(fault)
  if (responses.length > 1) faults.push(`${responses.length} responses to one request`)
  // A body that ends with the connection is complete only if the connection ended without a reset.
  const endsWithConnection =
    got?.values('content-length').length === 0 && got.values('transfer-encoding').length === 0
  return got === undefined || (received.end === 'broken' && endsWithConnection) ? 'broken' : got
}

async function askHttp2({ bed }: Scene, path: string, ask: Case['ask'], faults: string[]): Promise<Result> {
  const connection = await connect({ transport: 'h2', url: bed.served.url })
  try {
    return await connection.send({
      path,
      method: ask === 'HEAD' || ask === 'POST' ? ask : 'GET',
      fields: ['Authorization', `Bearer ${bed.token}`],
      ...(ask === 'POST' ? { body: 'hello' } : {}),
    })
  } catch (error) {
    if (!(error instanceof BrokenTransfer)) throw error
    if (/ within \d+ ms$/.test(error.message)) faults.push(error.message)
    return 'broken'
  } finally {
    connection.close()
  }
}

let keys = 0

/** Arbitrary responses of a device. A client gets the response that was meant, or a broken transfer. */
export const device: Target = {
  name: 'device',
  settings: [
    CLEARTEXT,
    ENCRYPTED,
    { transport: 'http1', parser: 'tolerant' },
    { transport: 'h2', parser: 'strict' },
  ],
  cases: fc.record({
    writes: inPieces(mutated(deviceResponse)),
    ending,
    ask: fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'POST', 'upgrade'),
  }),
  async open(scenes) {
    const scene = await scenes.scripted()
    const ask = scenes.setting.transport === 'http1' ? askHttp1 : askHttp2
    return async (item) => {
      keys += 1
      scene.device.script(String(keys), item)
      const faults: string[] = []
      const got = await ask(scene, `/case/${keys}`, item.ask, faults)
      // The next request must get its own response, whatever remains on the connection to the device.
      return [...faults, ...faultsIn(got, item, scenes.setting.parser), ...(await scene.bed.control())]
    }
  },
}
