import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import type { SomeBounds } from '../../src/compose/bounds.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { startDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import { headOf, responsesIn } from '../support/http1-reader.ts'
import type { Response } from '../support/message.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { PASSWORD, startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import type { Transport } from '../support/transports.ts'

/** A sidecar with a live token: a request with it can be refused only for the fault that the case names. */
export interface Front {
  readonly sidecar: TestSidecar
  readonly token: string
  /** Sends bytes in `pieces` packets on a new connection. `TOKEN` in them stands for the live token. */
  send(bytes: string, pieces?: number): Promise<RawPeer>
  /** Sends bytes on a new connection, and returns the responses until it closes. */
  responsesTo(bytes: string): Promise<Response[]>
  /**
   * Checks that bytes are refused: one 400, then the close. A request behind them does not run, and no byte reaches the
   * device.
   */
  expectRefused(bytes: string, pieces?: number): Promise<void>
  /** Checks what must be true after every case: the next good request gets its 200, and the log holds no secret. */
  expectServing(): Promise<void>
  /** Checks the same, and that no connection is left. */
  expectNothingLeft(): Promise<void>
}

/** The head of a `POST /x` with a good token. */
export const post = (...fields: readonly string[]): string =>
  headOf('POST /x HTTP/1.1', 'Host: device', 'Authorization: Bearer TOKEN', ...fields)

/** The head of a `GET /x` with a good token. */
export const get = (...fields: readonly string[]): string =>
  headOf('GET /x HTTP/1.1', 'Host: device', 'Authorization: Bearer TOKEN', ...fields)

/** A good request behind a refused one: it must never run. */
export const SMUGGLED: string = headOf(
  'GET /smuggled HTTP/1.1',
  'Host: device',
  'Authorization: Bearer TOKEN',
)

export async function startFront(
  transport: Transport,
  config: YamlPart = {},
  bounds: SomeBounds = {},
): Promise<Front> {
  const device = await startDevice()
  const sidecar = await startSidecar({ transport, device, config, bounds })
  const token = await sidecar.token()
  let checkedLines = 0

  async function send(bytes: string, pieces = 1): Promise<RawPeer> {
    const raw = await rawConnection(sidecar.url)
    const text = bytes.replaceAll('TOKEN', token)
    const size = Math.ceil(text.length / pieces)
    for (let at = 0; at < text.length; at += size) {
      raw.write(text.slice(at, at + size))
      if (pieces > 1) await nextTurn()
    }
    return raw
  }

  async function expectServing(): Promise<void> {
    const { status, text } = await sidecar.request({ token })
    expect([status, text]).toEqual([200, 'from the device'])
    expectCleanLog()
  }

  /** Checks that the log lines since the last call hold no secret and report no bug. */
  function expectCleanLog(): void {
    const lines = sidecar.logLines()
    const newLines = lines.slice(checkedLines).join('\n')
    checkedLines = lines.length
    for (const secret of [token, PASSWORD, encodeURIComponent(PASSWORD)])
      expect(newLines).not.toContain(secret)
    expect(newLines, 'a bug').not.toMatch(/"level":"?(?:error|fatal|50|60)/)
  }

  return {
    sidecar,
    token,
    send,
    responsesTo: async (bytes) => responsesIn(await (await send(bytes)).closed),
    async expectRefused(bytes, pieces) {
      const before = device.byteCount
      const raw = await send(bytes + SMUGGLED, pieces)
      const responses = responsesIn(await raw.closed)
      expect(responses.map(({ status }) => status)).toEqual([400])
      for (const response of responses) {
        expectError(response, 400, 'invalid_request')
        expect(response.header('Connection')).toBe('close')
      }
      expect(device.byteCount, 'bytes at the device').toBe(before)
    },
    expectServing,
    async expectNothingLeft() {
      await expectServing()
      // `expect.poll` works in tests alone, and a hook calls this too.
      while ((await sidecar.metric('postern_connections')) > 0);
      // The end of a connection may be logged.
      expectCleanLog()
    },
  }
}

/**
 * One front for all tests of a block. After each test it must serve; after the last one no connection may be left. This
 * is checked only once, because the metrics take more processor time than a case.
 */
export function sharedFront(transport: Transport, config: YamlPart = {}): Front {
  let started: Front | undefined
  const front = (): Front => started ?? expect.fail('not started yet')
  beforeAll(async () => {
    started = await startFront(transport, config)
  })
  afterEach(() => front().expectServing())
  afterAll(() => front().expectNothingLeft())
  return {
    get sidecar() {
      return front().sidecar
    },
    get token() {
      return front().token
    },
    send: (...given) => front().send(...given),
    responsesTo: (bytes) => front().responsesTo(bytes),
    expectRefused: (...given) => front().expectRefused(...given),
    expectServing: () => front().expectServing(),
    expectNothingLeft: () => front().expectNothingLeft(),
  }
}
