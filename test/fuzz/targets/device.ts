import fc from 'fast-check'
import { fieldValues } from '../../../src/http/fields.ts'
import { connect } from '../../support/client.ts'
import { createHttp1Reader } from '../../support/http1-reader.ts'
import { BrokenTransfer, type Head, type Response } from '../../support/message.ts'
import { faultsOf, readAnswers } from '../answers.ts'
import { ACCESS, type Case, type Setting } from '../case.ts'
import { answerText } from '../device-grammar.ts'
import { inPieces, mutated } from '../mutation.ts'
import { CLEARTEXT, ENCRYPTED, type Scene, type Target } from '../target.ts'
import { play } from '../wire.ts'

const ending = fc.oneof(
  { weight: 6, arbitrary: fc.constant('end' as const) },
  { weight: 2, arbitrary: fc.constant('reset' as const) },
  { weight: 1, arbitrary: fc.constant('open' as const) },
)

/** What a client got: an answer that looks whole, or something broken. */
type Got = Response | 'broken'

/** What the device's bytes say to a strict reader. */
type Meant =
  | { readonly kind: 'whole'; readonly status: number; readonly body: Buffer }
  | { readonly kind: 'cut' }
  | { readonly kind: 'malformed' }

/** A chunk of size zero. Read tolerantly it is the end, whatever is missing behind it. */
const LAST_CHUNK = /\n0+[ \t]*(?:;[^\n]*)?\r*\n/

function meaningOf({ writes, ending, ask }: Case, parser: Setting['parser']): Meant {
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
    // What follows a whole answer belongs to nobody.
    if (!whole) return { kind: 'malformed' }
  }
  // To whoever reads tolerantly there may be a head where there is none for us.
  if (head === undefined) return { kind: 'malformed' }
  if (!whole && parser === 'tolerant' && LAST_CHUNK.test(writes.join(''))) return { kind: 'malformed' }
  if (!whole) return { kind: 'cut' }
  return { kind: 'whole', status: head.status, body: Buffer.concat(chunks) }
}

/** Where a field may begin in what the device sent: behind a line feed, never behind a bare CR or a NUL. */
function sent(name: string, { writes }: Case): boolean {
  const lines = writes.join('').toLowerCase().split('\n')
  return lines.some((line) => line.replaceAll(/[ \t]+:/g, ':').startsWith(`${name.toLowerCase()}:`))
}

const OURS = new Set([
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

function faultsIn(got: Got, item: Case, parser: Setting['parser']): string[] {
  if (got === 'broken') return []
  const own = fieldValues(got.fields, 'proxy-status').length > 0
  if (own) return faultsOf(got, true)
  const meant = meaningOf(item, parser)
  const faults: string[] = []
  if (meant.kind === 'cut')
    faults.push(`what was cut short looks whole: ${got.status} ${got.body.length} bytes`)
  if (meant.kind === 'whole') {
    if (got.status !== meant.status) faults.push(`${got.status} instead of ${meant.status}`)
    if (!got.body.equals(meant.body))
      faults.push(`another body: ${got.body.length} bytes of ${meant.body.length}`)
  }
  for (let i = 0; i < got.fields.length; i += 2) {
    const name = got.fields[i] ?? ''
    if (!OURS.has(name.toLowerCase()) && !sent(name, item)) faults.push(`a field from nowhere: ${name}`)
  }
  if (got.status === 101 && item.ask !== 'upgrade') faults.push('a 101 that nobody asked for')
  if (fieldValues(got.fields, 'x-ratelimit-limit').join() !== '1000000')
    faults.push('X-RateLimit fields amiss')
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

async function askHttp1({ bed }: Scene, path: string, ask: Case['ask'], faults: string[]): Promise<Got> {
  const lines = [
    `${ask === 'upgrade' || ask === undefined ? 'GET' : ask} ${path} HTTP/1.1`,
    ...['Host: x', `Authorization: Bearer ${ACCESS}`],
    ...(ask === 'upgrade' ? UPGRADE : ['Connection: close']),
    ...(ask === 'POST' ? ['Content-Length: 5'] : []),
  ]
  const head = bed.bytesOf(`${lines.join('\r\n')}\r\n\r\n${ask === 'POST' ? 'hello' : ''}`)
  const heard = await play(bed.served.url, { writes: [head], ending: ask === 'upgrade' ? 'end' : 'open' })
  if (heard.end === 'deaf') faults.push('the connection was never closed')
  const { answers, fault } = readAnswers(heard.bytes, ask === 'HEAD')
  const [got] = answers
  if (fault !== undefined && fault !== 'the last answer is cut short') faults.push(fault)
  if (answers.length > 1) faults.push(`${answers.length} answers to one question`)
  // A body that ends with the connection is whole only if that ended in good order.
  const endsWithConnection =
    got?.values('content-length').length === 0 && got.values('transfer-encoding').length === 0
  return got === undefined || (heard.end === 'broken' && endsWithConnection) ? 'broken' : got
}

async function askHttp2({ bed }: Scene, path: string, ask: Case['ask'], faults: string[]): Promise<Got> {
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
    if (error.message.startsWith('no whole answer within')) faults.push(error.message)
    return 'broken'
  } finally {
    connection.close()
  }
}

let keys = 0

/** Whatever a device may answer. A client sees an answer as it was meant, or a broken one. */
export const device: Target = {
  name: 'device',
  settings: [
    CLEARTEXT,
    ENCRYPTED,
    { transport: 'http1', parser: 'tolerant' },
    { transport: 'h2', parser: 'strict' },
  ],
  cases: fc.record({
    writes: inPieces(mutated(answerText)),
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
      // The next request must get its own answer, whatever was left on the device's connection.
      return [...faults, ...faultsIn(got, item, scenes.setting.parser), ...(await scene.bed.control())]
    }
  },
}
