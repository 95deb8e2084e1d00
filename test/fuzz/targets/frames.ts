import fc from 'fast-check'
import {
  END_HEADERS,
  END_STREAM,
  type Frame,
  frame,
  NO_TABLE,
  PREFACE,
  packedFields,
  readFrames,
  statusOf,
  TYPES,
  uint32,
} from '../../support/http2-bytes.ts'
import { ACCESS, type Case, tokensIn } from '../case.ts'
import { mutated, UNKNOWN_TOKEN } from '../mutation.ts'
import { ENCRYPTED, type Target } from '../target.ts'
import { play } from '../wire.ts'
import { endings } from './heads.ts'

const FIELDS: readonly (readonly [string, string])[] = [
  ...([
    ['content-length', '5'],
    ['content-length', '0'],
    ['te', 'trailers'],
    ['te', 'gzip'],
    ['connection', 'close'],
  ] as const),
  ...([
    ['expect', '100-continue'],
    ['host', 'y'],
    ['cookie', 'a=1'],
    ['cookie', 'b=2'],
    ['X-Upper', '1'],
  ] as const),
  ...([
    ['x-nul', 'a\0b'],
    ['x-lf', 'a\nb: c'],
    ['', 'x'],
    [':late', 'x'],
    ['transfer-encoding', 'chunked'],
  ] as const),
  ...([
    ['upgrade', 'websocket'],
    [':protocol', 'websocket'],
    ['x-long', 'v'.repeat(5000)],
    ['a b', 'c'],
  ] as const),
  ...([
    ['authorization', 'Bearer x'],
    ['x-forwarded-for', '192.0.2.1'],
    ['x_forwarded_for', '1'],
    ['x:y', 'z'],
  ] as const),
]

const block = fc
  .record({
    method: fc.constantFrom('GET', 'GET', 'POST', 'HEAD', 'CONNECT', 'PUT', 'bREW', ''),
    path: fc.constantFrom(
      '/plain',
      '/plain',
      '/plain',
      '/oauth/token',
      '*',
      '',
      'a',
      '/a b',
      '/a#b',
      '/\xe9',
      '/a\0',
    ),
    scheme: fc.constantFrom('https', 'https', 'https', 'http', 'x', ''),
    authority: fc.constantFrom('x', 'x', 'x', 'a@b', '', 'x:99999'),
    token: fc.constantFrom(`Bearer ${ACCESS}`, `Bearer ${ACCESS}`, undefined),
    fields: fc.array(fc.constantFrom(...FIELDS), { maxLength: 3 }),
    without: fc.constantFrom(-1, -1, -1, -1, -1, -1, 0, 1, 2, 3),
    twice: fc.constantFrom(-1, -1, -1, -1, -1, -1, -1, 0, 2),
  })
  .map(({ method, path, scheme, authority, token, fields, without, twice }) => {
    const pseudo: (readonly [string, string])[] = [
      [':method', method],
      [':scheme', scheme],
      [':path', path],
      [':authority', authority],
    ]
    const kept = pseudo.flatMap((pair, i) => (i === without ? [] : i === twice ? [pair, pair] : [pair]))
    return packedFields([
      ...kept,
      ...(token === undefined ? [] : [['authorization', token] as const]),
      ...fields,
    ])
  })

const id = fc.constantFrom(1, 1, 1, 3, 3, 5, 7, 2, 0, 0x7fffffff)
const flags = fc.constantFrom(0, END_STREAM, END_HEADERS, END_STREAM | END_HEADERS, 0x08, 0x20, 0xff)

/** The frames of one stream: a request with its body, in one or two header frames. */
const exchange = fc
  .record({
    block,
    end: fc.boolean(),
    cut: fc.option(fc.nat(20), { nil: undefined }),
    body: fc.constantFrom('', 'hello', 'x'.repeat(5000)),
    trailers: fc.constantFrom('', '', packedFields([['x-t', '1']]), packedFields([[':status', '200']])),
    reset: fc.constantFrom(-1, -1, -1, -1, 0, 8),
  })
  .map(({ block, end, cut, body, trailers, reset }) => (stream: number) => [
    ...(cut === undefined
      ? [frame(TYPES.headers, (end ? END_STREAM : 0) | END_HEADERS, stream, block)]
      : [
          frame(TYPES.headers, end ? END_STREAM : 0, stream, block.slice(0, cut)),
          frame(TYPES.continuation, END_HEADERS, stream, block.slice(cut)),
        ]),
    ...(end ? [] : [frame(TYPES.data, trailers === '' ? END_STREAM : 0, stream, body)]),
    ...(end || trailers === '' ? [] : [frame(TYPES.headers, END_STREAM | END_HEADERS, stream, trailers)]),
    ...(reset < 0 ? [] : [frame(TYPES.reset, 0, stream, uint32(reset))]),
  ])

const stray = fc
  .oneof(
    fc
      .tuple(
        fc.nat(12),
        flags,
        id,
        fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
      )
      .map((args) => frame(...args)),
    fc
      .tuple(fc.nat(7), fc.constantFrom(0, 1, 100, 0x7fffffff, 0xffffffff))
      .map(([key, value]) => frame(TYPES.settings, 0, 0, `\0${String.fromCharCode(key)}${uint32(value)}`)),
    fc
      .tuple(id, fc.constantFrom(0, 1, 65535, 0x7fffffff))
      .map(([stream, by]) => frame(TYPES.window, 0, stream, uint32(by))),
    fc
      .tuple(fc.constantFrom(0, 1), fc.constantFrom(7, 8))
      .map(([ack, size]) => frame(TYPES.ping, ack, 0, '\0'.repeat(size))),
    fc.constant(frame(TYPES.goaway, 0, 0, uint32(0) + uint32(0))),
    fc.tuple(id, id).map(([stream, on]) => frame(TYPES.priority, 0, stream, `${uint32(on)}\x10`)),
  )
  .map((text) => () => [text])

const tokenless = fc.nat(3).map((chance) => chance === 0)

const session = fc
  .array(fc.oneof({ weight: 4, arbitrary: exchange }, { weight: 1, arbitrary: stray }), {
    minLength: 1,
    maxLength: 6,
  })
  .map((parts) => parts.flatMap((part, i) => part(2 * i + 1)))

const damaged = session.chain((frames) =>
  fc
    .nat(frames.length - 1)
    .chain((at) => mutated(fc.constant(frames[at] ?? '')).map((text) => frames.with(at, text))),
)

/** GOAWAY lets the sidecar close the connection after its last response; a FIN forces that. */
const GOODBYE = frame(TYPES.goaway, 0, 0, uint32(0) + uint32(0))

function faultsIn(bytes: Buffer, item: Case): string[] {
  const { frames, rest } = readFrames(bytes)
  const faults: string[] = []
  const ended = new Set<number>()
  const begun = new Set<number>()
  for (const [i, each] of frames.entries()) faults.push(...faultOf(each, i, begun, ended))
  if (rest > 0 && item.ending !== 'reset') faults.push(`${rest} bytes after the last frame`)
  return faults
}

function faultOf(
  { type, flags, stream, payload }: Frame,
  i: number,
  begun: Set<number>,
  ended: Set<number>,
): string[] {
  if (i === 0 && type !== TYPES.settings) return ['the first frame is not SETTINGS']
  if (type > TYPES.continuation || type === TYPES.push) return [`a frame of type ${type}`]
  if (type !== TYPES.headers && type !== TYPES.data) return []
  const faults: string[] = []
  if (stream % 2 === 0) faults.push(`a response on stream ${stream}`)
  if (ended.has(stream)) faults.push(`a frame on stream ${stream} after its end`)
  if (type === TYPES.data && !begun.has(stream)) faults.push(`a body without a head on stream ${stream}`)
  if (type === TYPES.headers) {
    const status = statusOf(payload)
    if (status !== undefined && ![100, 200, 400, 401].includes(status)) faults.push(`the status ${status}`)
    if (status !== 100) begun.add(stream)
  }
  if (flags & END_STREAM) ended.add(stream)
  return faults
}

/** HTTP/2 frames, in and out of order, one of them damaged. */
export const frames: Target = {
  name: 'frames',
  settings: [ENCRYPTED],
  cases: fc.record({
    writes: fc
      .tuple(damaged, tokenless)
      .map(([frames, withoutToken]) =>
        withoutToken ? frames.map((text) => text.replaceAll(ACCESS, UNKNOWN_TOKEN)) : frames,
      )
      .map((frames) => [PREFACE + NO_TABLE, ...frames, GOODBYE]),
    ending: endings,
  }),
  async open(scenes) {
    const { bed, device } = await scenes.scripted()
    return async (item) => {
      const client = bed.nextClient()
      const received = await play(
        bed.served.url,
        { writes: item.writes.map(bed.bytesOf), ending: item.ending },
        { from: client, alpn: 'h2' },
      )
      const faults = faultsIn(received.bytes, item)
      if (received.end === 'timeout') faults.push('the connection was never closed')
      const admitted = device.seenFrom(client).length
      if (admitted > tokensIn(item))
        faults.push(`${admitted} requests at the device with ${tokensIn(item)} tokens`)
      return faults.map((fault) => `${fault}: ${bed.loggedOf(client)}`)
    }
  },
}
