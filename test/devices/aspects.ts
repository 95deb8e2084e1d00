import { deepStrictEqual, ok } from 'node:assert'
import { createHash } from 'node:crypto'
import { connect, send } from '../support/client.ts'
import type { Connection, Response } from '../support/message.ts'
import type { TestSidecar, YamlPart } from '../support/sidecar.ts'
import { BrokenDevice, expectSame } from './compare.ts'
import { type Check, configured, heads, programs, ranges, reading, refusals } from './requests.ts'
import type { RealServer } from './servers.ts'
import { binary } from './site.ts'

/** A server with a sidecar in front of it. */
export interface Pair {
  readonly server: RealServer
  readonly url: string
  readonly sidecar: TestSidecar
  readonly token: string
  /** Is told of a request that the device answers improperly, so that its response cannot be compared. */
  readonly broken?: (request: string) => void
}

/** One kind of use. A column of docs/devices.md. */
export interface Aspect {
  readonly name: string
  /** Whether the server can do this at all. */
  applies(server: RealServer): boolean
  /** Rejects with the first request that does not work through the sidecar. */
  through(pair: Pair): Promise<void>
  /** The same without the sidecar. Undefined: `through` compares with direct, request by request. */
  readonly direct?: (server: RealServer, url: string) => Promise<void>
  /** The `upstream` keys that may help, in the order in which they are tried. */
  readonly remedies: readonly YamlPart[]
}

const CONNECTIONS: readonly YamlPart[] = [{ reuse: 'never' }, { max_in_flight: 1 }]
const PIECES = [binary.subarray(0, 100_000), binary.subarray(100_000)]
const WHOLE = `${createHash('sha256').update(binary).digest('hex')}  -`
const EARLY = Buffer.alloc(3_000_000)
const TRIES = 3

/** How long (ms) a response is awaited that never comes. */
const SILENCE = 2_000

const always = (): boolean => true
const takesUploads = ({ digest }: RealServer): boolean => digest !== undefined

/** What to do if the device itself gives no proper response. Any other error is a difference. */
function ifBroken(then: () => Promise<unknown>): (error: unknown) => Promise<unknown> {
  return (error) => {
    if (error instanceof BrokenDevice) return then()
    throw error
  }
}

/** Compares the responses to these requests with those of the device. */
function same(name: string, checks: (server: RealServer) => readonly Check[]): Aspect {
  return {
    name,
    applies: (server) => checks(server).length > 0,
    async through({ server, url, sidecar, token, broken }) {
      for (const { name: check, ...request } of checks(server)) {
        const asked = `${name}, ${check}`
        const silent = server.silent?.includes(asked) === true
        await expectSame(url, sidecar, token, { ...request, ...(silent && { signal: AbortSignal.timeout(SILENCE) }) }).catch(
          ifBroken(async () => broken?.(asked)),
        )
      }
    },
    remedies: [],
  }
}

async function conditionally({ server, url, sidecar, token }: Pair): Promise<void> {
  const file = await expectSame(url, sidecar, token, { path: '/hello.txt' })
  for (const [validator, condition] of [
    ['Last-Modified', 'If-Modified-Since'],
    ['ETag', 'If-None-Match'],
  ] as const) {
    const value = file.header(validator)
    if (value === undefined) continue
    const fields = [condition, value]
    const response = await expectSame(url, sidecar, token, { path: '/hello.txt', fields })
    if (server.conditional) deepStrictEqual(response.status, 304)
  }
}

async function readTimes(
  times: number,
  connection: Connection,
  fields: readonly string[] = [],
): Promise<void> {
  for (let i = 0; i < times; i += 1) {
    const response = await connection.send({ path: '/hello.txt', fields })
    deepStrictEqual(response.text, 'hello from the device\n')
  }
}

async function uploads(pending: Promise<Response>): Promise<void> {
  deepStrictEqual((await pending).text.trim(), WHOLE)
}

/** An upload, with the sidecar and without it. */
function upload(name: string, body: Buffer | readonly Buffer[], remedies: readonly YamlPart[]): Aspect {
  return {
    name,
    applies: takesUploads,
    through: ({ server: { digest = '/' }, sidecar, token }) =>
      uploads(sidecar.request({ token, path: digest, body })),
    direct: ({ digest = '/' }, url) => uploads(send({ transport: 'http1', url, path: digest, body })),
    remedies,
  }
}

/** Whether most of some long uploads to a file, which no server takes, end with a response of the server. */
async function isAnswered(request: () => Promise<Response>): Promise<boolean> {
  let count = 0
  for (let i = 0; i < TRIES && count * 2 < TRIES; i += 1) {
    const response = await request().catch(() => undefined)
    if (response !== undefined && response.header('Proxy-Status') === undefined) count += 1
  }
  return count * 2 > TRIES
}

const early = { method: 'POST', path: '/hello.txt', body: EARLY } as const

export const aspects: readonly Aspect[] = [
  same('reading', () => reading),
  same('ranges', () => ranges),
  same('HEAD', () => heads),
  same('refusals', () => refusals),
  { name: 'conditions', applies: always, through: conditionally, remedies: [] },
  {
    name: 'keep-alive',
    applies: always,
    through: async ({ sidecar, token }) =>
      readTimes(5, await sidecar.connect(), ['Authorization', `Bearer ${token}`]),
    direct: async (_server, url) => readTimes(5, await connect({ transport: 'http1', url })),
    remedies: CONNECTIONS,
  },
  {
    name: 'eight at once',
    applies: always,
    async through({ sidecar, token }) {
      const fields = ['Authorization', `Bearer ${token}`]
      const clients = Array.from({ length: 8 }, async () => readTimes(2, await sidecar.connect(), fields))
      await Promise.all(clients)
    },
    remedies: CONNECTIONS,
  },
  same('programs', ({ cgi, name }) =>
    name === 'nginx'
      ? configured
      : programs.filter(({ body }) => cgi === 'with bodies' || (cgi !== 'no' && body === undefined)),
  ),
  upload('upload', binary, []),
  upload('upload without length', PIECES, [{ buffer_uploads: '1MiB' }]),
  {
    name: 'early answer',
    applies: always,
    async through({ sidecar, token }) {
      ok(await isAnswered(() => sidecar.request({ token, ...early })), 'most uploads get no response')
    },
    remedies: [{ reuse: 'never' }],
  },
]
