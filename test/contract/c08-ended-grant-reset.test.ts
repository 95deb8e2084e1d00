import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { control } from '../../src/commands/control.ts'
import { startDevice } from '../support/device.ts'
import { CODE, FRAME, headers, requestFields, SETTING, settings } from '../support/http2-frames.ts'
import { type RawSession, rawSession } from '../support/http2-session.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

const INTERNAL_ERROR = 2

interface Bed {
  readonly sidecar: TestSidecar
  readonly session: RawSession
  readonly response: ServerResponse
}

const EVENTS = { 'Content-Type': 'text/event-stream' }

/** Opens a stream over HTTP/2 for a client with this window. Resolves when its head and these bytes have arrived. */
async function open(bytes: number, window: number, fields: OutgoingHttpHeaders = EVENTS): Promise<Bed> {
  const begun = Promise.withResolvers<ServerResponse>()
  const device = await startDevice((_request, response) => {
    response.writeHead(200, fields)
    response.flushHeaders()
    if (bytes > 0) response.write('x'.repeat(bytes))
    begun.resolve(response)
  })
  const sidecar = await startSidecar({ transport: 'h2', device })
  const session = await rawSession(sidecar.url, {
    opening: [settings([SETTING.headerTableSize, 0], [SETTING.initialWindowSize, window])],
  })
  session.send(headers(1, requestFields(['authorization', `Bearer ${await sidecar.token()}`])))
  expect(await session.status(1)).toBe(200)
  if (bytes > 0 && window > 0) await session.waitFor(({ type }) => type === FRAME.data)
  return { sidecar, session, response: await begun.promise }
}

async function revokeAll({ directory }: TestSidecar): Promise<void> {
  await control(join(directory, 'state'), { method: 'POST', path: '/revoke', command: { all: true } })
}

it.each([
  ['with only its head', 0, 65_535],
  ['with a piece, and nothing waiting', 10, 65_535],
  ['with bytes that wait for the window of the client', 200_000, 1_000],
  ['whose body waits for a window of 0', 10, 0],
])(
  'C8 C24 over HTTP/2 a stream of events %s ends with its grant by CANCEL, never as if it were whole',
  async (_, bytes, window) => {
    const { sidecar, session } = await open(bytes, window)
    await revokeAll(sidecar)
    expect(await session.outcome(1)).toBe(CODE.cancel)
    session.raw.end()
  },
)

it.each([
  ['with a length', { 'Content-Length': '100000000' }],
  ['in chunks', {}],
  ['that is a file without a length', { 'Content-Type': 'application/octet-stream' }],
] as const)(
  'C24 over HTTP/2 a transfer %s that its grant ends is reset with INTERNAL_ERROR',
  async (_, fields) => {
    const { sidecar, session } = await open(10, 65_535, fields)
    await revokeAll(sidecar)
    expect(await session.outcome(1)).toBe(INTERNAL_ERROR)
    session.raw.end()
  },
)

it.each([
  ['events', EVENTS],
  ['a transfer', {}],
] as const)('C24 over HTTP/2 %s that the device cuts ends by INTERNAL_ERROR', async (_, fields) => {
  const { session, response } = await open(10, 65_535, fields)
  response.destroy()
  expect(await session.outcome(1)).toBe(INTERNAL_ERROR)
  session.raw.end()
})
