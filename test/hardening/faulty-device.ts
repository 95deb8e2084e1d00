import { expect } from 'vitest'
import { startRawDevice } from '../support/device.ts'
import { type ErrorCode, expectError, proxyError } from '../support/errors.ts'
import type { Request, Response } from '../support/message.ts'
import type { RawPeer } from '../support/raw.ts'
import { brokenBy, nextRequest, OK } from '../support/scripted.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'

type Lane = 'strict' | 'tolerant' | 'auto'

/** What a device does with a request, the head of which it has just read. */
export type Script = (peer: RawPeer, head: string) => unknown

/** A device, and the requests that reached its fault. */
interface FaultyDevice {
  readonly url: string
  /** The heads of the requests to `/faulty`. */
  readonly asked: readonly string[]
}

export interface World {
  readonly transport: 'http1' | 'h2'
  readonly lane: Lane
  readonly sidecar: TestSidecar
  readonly device: FaultyDevice
  readonly token: string
  /** A request to `/faulty`. */
  ask(request?: Request): Promise<Response>
}

export interface WorldOptions {
  /** Below `upstream`. */
  readonly upstream?: YamlPart
  /** Instead of the scripted device. */
  readonly url?: string
  readonly lanes?: readonly Lane[]
}

/** A device that goes wrong at `/faulty`, as scripted, and answers everything else as it should. */
async function startFaultyDevice(script: Script): Promise<FaultyDevice> {
  const asked: string[] = []
  const { url } = await startRawDevice(async (peer) => {
    for (;;) {
      const head = await nextRequest(peer)
      if (/^\w+ \/faulty /.test(head)) {
        asked.push(head)
        await script(peer, head)
        return
      }
      peer.write(OK)
    }
  })
  return { url, asked }
}

/** A script that answers with these bytes and then closes. */
export const saying =
  (bytes: string): Script =>
  (peer) =>
    peer.end(bytes)

/**
 * Acts the same in every lane with clients of HTTP/1, and in one of them, `auto` if it is among them, with clients of
 * HTTP/2: the lane reads the device and knows nothing of the client. Afterwards nothing may be left of it: the next
 * good request gets its 200, and nothing is under way any more.
 */
export async function inEveryLane(
  script: Script,
  act: (world: World) => Promise<void>,
  { upstream = {}, url, lanes = ['strict', 'tolerant', 'auto'] }: WorldOptions = {},
): Promise<void> {
  const forHttp2 = lanes.find((lane) => lane === 'auto') ?? lanes[0] ?? 'auto'
  const worlds = [
    ...lanes.map((lane) => ({ transport: 'http1', lane }) as const),
    { transport: 'h2', lane: forHttp2 } as const,
  ]
  await Promise.all(
    worlds.map(async ({ transport, lane }) => {
      const device = await startFaultyDevice(script)
      const sidecar = await startSidecar({
        transport,
        device: { url: url ?? device.url },
        config: { status_codes: 'http', upstream: { parser: lane, ...upstream } },
      })
      const token = await sidecar.token()
      const ask = (request: Request = {}): Promise<Response> =>
        sidecar.request({ path: '/faulty', token, ...request })
      try {
        await act({ transport, lane, sidecar, device, token, ask })
        if (url === undefined) expect((await sidecar.request({ token })).text, 'afterwards').toBe('ok')
        const underWay = async (): Promise<number[]> => {
          const figure = await sidecar.figures()
          return [figure('postern_upstream_in_flight'), figure('postern_connections')]
        }
        await expect.poll(underWay).toEqual([0, 0])
      } catch (error) {
        if (error instanceof Error) error.message = `${lane}, ${transport}: ${error.message}`
        throw error
      }
    }),
  )
}

/** The access-log lines of requests to `/faulty`. */
export function logged({ sidecar }: World): Record<string, unknown>[] {
  return sidecar
    .logLines()
    .map((line) => JSON.parse(line))
    .filter(({ msg, path }) => msg === 'request' && path === '/faulty')
}

/** Holds an answer to what a failure before the head of the device's answer must come to, by any of its names. */
export async function expectFailure(world: World, answer: Response, failure: string): Promise<void> {
  const late = failure.endsWith('_timeout')
  const code: ErrorCode = late ? 'upstream_timeout' : 'upstream_unavailable'
  expectError(answer, late ? 504 : 502, code)
  expect(proxyError(answer)).toBe(failure)
  expect(logged(world).at(-1)).toMatchObject({ status: answer.status, refusal: `upstream: ${failure}` })
}

/** Asks for a body that the device breaks off, and holds that to what must come of it. */
export async function expectCut(world: World, failure: string, seen = 'only this'): Promise<void> {
  const { sidecar, token } = world
  const connection = await sidecar.connect()
  const fields = ['Authorization', `Bearer ${token}`]
  const exchange = connection.start({ path: '/faulty', fields })
  const { partial } = await brokenBy(exchange)
  expect([partial?.status, partial?.text]).toEqual([200, seen])
  // In HTTP/2 it is one stream that breaks: the others of its session go on.
  if (world.transport === 'h2') expect((await connection.send({ fields })).text).toBe('ok')
  else await connection.closed
  connection.close()
  expect(await failures(world)).toEqual({ [failure]: 1 })
  await expect.poll(() => logged(world).at(-1)).toMatchObject({ status: 200, end: 'cut', out: seen.length })
}

/** What `postern_upstream_errors_total` has counted, by reason. */
export async function failures({ sidecar }: World): Promise<Record<string, number>> {
  const samples = (await sidecar.metrics()).matchAll(
    /^postern_upstream_errors_total\{reason="(\w+)"\} (\d+)$/gm,
  )
  return Object.fromEntries([...samples].map(([, reason, count]) => [reason, Number(count)]))
}
