import fc from 'fast-check'
import {
  frame as bytesOfFrame,
  FLAG,
  FRAME,
  type Frame,
  goaway,
  hpack,
  PREFACE,
  readFrames,
  resetStream,
  SETTING,
  settings,
  statusOf,
  uint32,
  windowUpdate,
} from '../../support/http2-frames.ts'
import { ACCESS, type Case, tokensIn } from '../case.ts'
import { mutated, UNKNOWN_TOKEN } from '../mutation.ts'
import { ENCRYPTED, type Target } from '../target.ts'
import { play } from '../wire.ts'
import { endings } from './heads.ts'

/** Cases are text, which can be cut, changed and printed. */
const asText = (bytes: Buffer): string => bytes.toString('latin1')
const frame = (type: number, flags: number, stream: number, payload = ''): string =>
  asText(bytesOfFrame(type, flags, stream, Buffer.from(payload, 'latin1')))
const packed = (...fields: (readonly [string, string])[]): string => asText(hpack(fields.flat()))

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
    return packed(...kept, ...(token === undefined ? [] : [['authorization', token] as const]), ...fields)
  })

const id = fc.constantFrom(1, 1, 1, 3, 3, 5, 7, 2, 0, 0x7fffffff)
const flags = fc.constantFrom(
  0,
  FLAG.endStream,
  FLAG.endHeaders,
  FLAG.endStream | FLAG.endHeaders,
  0x08,
  0x20,
  0xff,
)

/** The frames of one stream: a request with its body, in one or two header frames. */
const exchange = fc
  .record({
    block,
    end: fc.boolean(),
    cut: fc.option(fc.nat(20), { nil: undefined }),
    body: fc.constantFrom('', 'hello', 'x'.repeat(5000)),
    trailers: fc.constantFrom('', '', packed(['x-t', '1']), packed([':status', '200'])),
    reset: fc.constantFrom(-1, -1, -1, -1, 0, 8),
  })
  .map(({ block, end, cut, body, trailers, reset }) => (stream: number) => [
    ...(cut === undefined
      ? [frame(FRAME.headers, (end ? FLAG.endStream : 0) | FLAG.endHeaders, stream, block)]
      : [
          frame(FRAME.headers, end ? FLAG.endStream : 0, stream, block.slice(0, cut)),
          frame(FRAME.continuation, FLAG.endHeaders, stream, block.slice(cut)),
        ]),
    ...(end ? [] : [frame(FRAME.data, trailers === '' ? FLAG.endStream : 0, stream, body)]),
    ...(end || trailers === ''
      ? []
      : [frame(FRAME.headers, FLAG.endStream | FLAG.endHeaders, stream, trailers)]),
    ...(reset < 0 ? [] : [asText(resetStream(stream, reset))]),
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
      .map(([key, value]) => asText(settings([key, value]))),
    fc
      .tuple(id, fc.constantFrom(0, 1, 65535, 0x7fffffff))
      .map(([stream, by]) => asText(windowUpdate(stream, by))),
    fc
      .tuple(fc.constantFrom(0, 1), fc.constantFrom(7, 8))
      .map(([ack, size]) => frame(FRAME.ping, ack, 0, '\0'.repeat(size))),
    fc.constant(asText(goaway(0))),
    fc.tuple(id, id).map(([stream, on]) => frame(FRAME.priority, 0, stream, `${asText(uint32(on))}\x10`)),
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

/** With a dynamic table of size 0, each header block of the server can be read on its own. */
const OPENING = asText(Buffer.concat([PREFACE, settings([SETTING.headerTableSize, 0])]))

/** GOAWAY lets the sidecar close the connection after its last response; a FIN forces that. */
const GOODBYE = asText(goaway(0))

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
  if (i === 0 && type !== FRAME.settings) return ['the first frame is not SETTINGS']
  if (type > FRAME.continuation || type === FRAME.pushPromise) return [`a frame of type ${type}`]
  if (type !== FRAME.headers && type !== FRAME.data) return []
  const faults: string[] = []
  if (stream % 2 === 0) faults.push(`a response on stream ${stream}`)
  if (ended.has(stream)) faults.push(`a frame on stream ${stream} after its end`)
  if (type === FRAME.data && !begun.has(stream)) faults.push(`a body without a head on stream ${stream}`)
  if (type === FRAME.headers) {
    const status = statusOf(payload)
    if (status !== undefined && ![100, 200, 400, 401].includes(status)) faults.push(`the status ${status}`)
    if (status !== 100) begun.add(stream)
  }
  if (flags & FLAG.endStream) ended.add(stream)
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
      .map((frames) => [OPENING, ...frames, GOODBYE]),
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
