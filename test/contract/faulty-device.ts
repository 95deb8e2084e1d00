import { EventEmitter, on } from 'node:events'
import { expect } from 'vitest'
import { type ErrorCode, expectError, proxyError } from '../support/expectations.ts'
import type { Request, Response } from '../support/message.ts'
import type { RawPeer } from '../support/raw.ts'
import { brokenBy, nextRequest, OK, startRawDevice } from '../support/raw-device.ts'
import { accessLines } from '../support/records.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import type { Transport } from '../support/transports.ts'

/** How each client asks: a parser reads the device and does not depend on the client, so each transport has one. */
const SETUPS = {
  strict: { transport: 'http1', codes: 'contract' },
  tolerant: { transport: 'tls', codes: 'http' },
  auto: { transport: 'h2', codes: 'http' },
} as const

type Parser = keyof typeof SETUPS

/** What a device does after it has read the head of a request. `cue` resolves when the test calls `proceed` the next time. */
export type Script = (peer: RawPeer, cue: () => Promise<void>) => unknown

/** A device that is faulty at one path. */
interface FaultyDevice {
  readonly url: string
  /** The heads of the requests to `/faulty`. */
  readonly received: readonly string[]
  /** The script goes on behind its next `cue`. */
  proceed(): unknown
}

/** One sidecar in front of a faulty device. */
export interface Setup {
  readonly transport: Transport
  readonly parser: Parser
  /** `status_codes`. */
  readonly codes: 'contract' | 'http'
  readonly sidecar: TestSidecar
  readonly device: FaultyDevice
  readonly token: string
  /** Sends a request to `/faulty`. */
  ask(request?: Request): Promise<Response>
}

export interface SetupOptions {
  /** Settings below `upstream`. */
  readonly upstream?: YamlPart
  /** The device to forward to instead of the scripted one. */
  readonly url?: string
  readonly parsers?: readonly Parser[]
}

/** Starts a device that follows the script at `/faulty` and answers every other request correctly. */
async function startFaultyDevice(script: Script): Promise<FaultyDevice> {
  const received: string[] = []
  const stage = new EventEmitter()
  const cues = on(stage, 'proceed')
  const cue = async (): Promise<void> => void (await cues.next())
  const { url } = await startRawDevice(async (peer) => {
    for (;;) {
      const head = await nextRequest(peer)
      if (/^\w+ \/faulty /.test(head)) {
        received.push(head)
        await script(peer, cue)
        return
      }
      peer.write(OK)
    }
  })
  return { url, received, proceed: () => stage.emit('proceed') }
}

/** A script that writes these bytes and then closes. */
export const answering =
  (bytes: string): Script =>
  (peer) =>
    peer.end(bytes)

/**
 * Runs `act` over every transport, each with a parser of its own. Afterwards the next good request must get its 200, and no request is
 * in flight.
 */
export async function withEveryParser(
  script: Script,
  act: (setup: Setup) => Promise<void>,
  { upstream = {}, url, parsers = ['strict', 'tolerant', 'auto'] }: SetupOptions = {},
): Promise<void> {
  await Promise.all(
    parsers.map(async (parser) => {
      const { transport, codes } = SETUPS[parser]
      const device = await startFaultyDevice(script)
      const sidecar = await startSidecar({
        transport,
        device: { url: url ?? device.url },
        config: { status_codes: codes, upstream: { parser, ...upstream } },
      })
      const token = await sidecar.token()
      const ask = (request: Request = {}): Promise<Response> =>
        sidecar.request({ path: '/faulty', token, ...request })
      try {
        await act({ transport, parser, codes, sidecar, device, token, ask })
        if (url === undefined) expect((await sidecar.request({ token })).text, 'afterwards').toBe('ok')
        const inFlight = async (): Promise<number[]> => {
          const figure = await sidecar.figures()
          return [figure('postern_upstream_in_flight'), figure('postern_connections')]
        }
        await expect.poll(inFlight).toEqual([0, 0])
      } catch (error) {
        if (error instanceof Error) error.message = `${parser}, ${transport}: ${error.message}`
        throw error
      }
    }),
  )
}

/** The access-log lines of requests to `/faulty`. */
export function faultyLines({ sidecar }: Setup): Record<string, unknown>[] {
  return accessLines(sidecar).filter(({ path }) => path === '/faulty')
}

/** Checks status, body, `Proxy-Status` and access line of a request that failed before the device's response head. */
export async function expectFailure(setup: Setup, response: Response, failure: string): Promise<void> {
  const late = failure.endsWith('_timeout')
  const code: ErrorCode = late ? 'upstream_timeout' : 'upstream_unavailable'
  expectError(response, setup.codes === 'contract' ? 500 : late ? 504 : 502, code)
  expect(proxyError(response)).toBe(failure)
  await expect
    .poll(() => faultyLines(setup).at(-1))
    .toMatchObject({ status: response.status, refusal: `upstream: ${failure}` })
}

/**
 * Sends a request whose response body breaks off, and checks what client, metrics and log get.
 * @param cut called when the client has what it sees of the body; default: the device's script goes on
 */
export async function expectCut(
  setup: Setup,
  failure: string,
  seen = 'only this',
  cut: () => unknown = setup.device.proceed,
): Promise<void> {
  const { sidecar, token } = setup
  const connection = await sidecar.connect()
  const fields = ['Authorization', `Bearer ${token}`]
  const exchange = connection.start({ path: '/faulty', fields })
  // Handled at once: it may break before the client has seen anything.
  const broken = brokenBy(exchange)
  await exchange.waitFor(seen)
  await cut()
  const { partial } = await broken
  expect([partial?.status, partial?.text]).toEqual([200, seen])
  // In HTTP/2 only the stream breaks, and the session goes on.
  if (setup.transport === 'h2') expect((await connection.send({ fields })).text).toBe('ok')
  else await connection.closed
  connection.close()
  expect(await failures(setup)).toEqual({ [failure]: 1 })
  await expect
    .poll(() => faultyLines(setup).at(-1))
    .toMatchObject({ status: 200, end: 'cut', out: seen.length })
}

/** The values of `postern_upstream_errors_total` by reason. */
export async function failures({ sidecar }: Setup): Promise<Record<string, number>> {
  const samples = (await sidecar.metrics()).matchAll(
    /^postern_upstream_errors_total\{reason="(\w+)"\} (\d+)$/gm,
  )
  return Object.fromEntries([...samples].map(([, reason, count]) => [reason, Number(count)]))
}
