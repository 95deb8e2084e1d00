import { afterAll, afterEach, beforeAll, expect, vi } from 'vitest'
import { BACK_TO_NORMAL } from '../support/aftermath.ts'
import { startDevice } from '../support/device.ts'
import { expectError } from '../support/errors.ts'
import type { Response } from '../support/message.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { answersIn, typed } from '../support/raw-answers.ts'
import { PASSWORD, startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import type { Transport } from '../support/transports.ts'

/** A sidecar, and a live token, so that what is refused is refused for what the case says and for nothing else. */
export interface Front {
  readonly sidecar: TestSidecar
  readonly token: string
  /** Sends bytes on a connection of their own, in so many pieces. `TOKEN` in a text stands for the live token. */
  send(bytes: string, pieces?: number): Promise<RawPeer>
  /** Everything that is answered to some bytes until the connection closes. */
  answersTo(bytes: string): Promise<Response[]>
  /**
   * Holds that bytes are refused: one 400, the connection closed behind it, nothing that follows taken for a request,
   * not a byte at the device.
   */
  refuses(bytes: string, pieces?: number): Promise<void>
  /** What must hold after every case: the next good request gets its 200, no secret is logged. */
  serves(): Promise<void>
  /** The same, and no connection is left. */
  holds(): Promise<void>
}

/** The lines of a request with a good token; `POST /x` unless told. */
export const post = (...fields: readonly string[]): string =>
  typed('POST /x HTTP/1.1', 'Host: device', 'Authorization: Bearer TOKEN', ...fields)

export const get = (...fields: readonly string[]): string =>
  typed('GET /x HTTP/1.1', 'Host: device', 'Authorization: Bearer TOKEN', ...fields)

/** A good request that must never run. */
export const SMUGGLED: string = typed('GET /smuggled HTTP/1.1', 'Host: device', 'Authorization: Bearer TOKEN')

export async function startFront(transport: Transport, config: YamlPart = {}): Promise<Front> {
  const device = await startDevice()
  const sidecar = await startSidecar({ transport, device, config })
  const token = await sidecar.token()
  let checkedLines = 0

  async function send(bytes: string, pieces = 1): Promise<RawPeer> {
    const raw = await rawConnection(sidecar.url)
    const text = bytes.replaceAll('TOKEN', token)
    const size = Math.ceil(text.length / pieces)
    for (let at = 0; at < text.length; at += size) {
      raw.write(text.slice(at, at + size))
      if (pieces > 1) await new Promise((resolve) => setImmediate(resolve))
    }
    return raw
  }

  async function serves(): Promise<void> {
    const { status, text } = await sidecar.request({ token })
    expect([status, text]).toEqual([200, 'from the device'])
    expectCleanLog()
  }

  /** What was logged since the last look names no secret and no bug. */
  function expectCleanLog(): void {
    const lines = sidecar.logLines()
    const news = lines.slice(checkedLines).join('\n')
    checkedLines = lines.length
    for (const secret of [token, PASSWORD, encodeURIComponent(PASSWORD)]) expect(news).not.toContain(secret)
    expect(news, 'a bug').not.toMatch(/"level":"?(?:error|fatal|50|60)/)
  }

  return {
    sidecar,
    token,
    send,
    answersTo: async (bytes) => answersIn(await (await send(bytes)).closed),
    async refuses(bytes, pieces) {
      const before = device.byteCount
      const raw = await send(bytes + SMUGGLED, pieces)
      const answers = answersIn(await raw.closed)
      expect(answers.map(({ status }) => status)).toEqual([400])
      for (const answer of answers) {
        expectError(answer, 400, 'invalid_request')
        expect(answer.header('Connection')).toBe('close')
      }
      expect(device.byteCount, 'bytes at the device').toBe(before)
    },
    serves,
    async holds() {
      await serves()
      const left = async () => expect(await sidecar.metric('postern_connections')).toBe(0)
      // `expect.poll` is for tests alone, and this is called in a hook too.
      await vi.waitFor(left, { interval: 5, timeout: BACK_TO_NORMAL })
      // A connection may be logged when it ends.
      expectCleanLog()
    },
  }
}

/**
 * A front for all the tests of a block. It must serve after each; that no connection is left is asked when all are over,
 * because the metrics take more processor time than a case.
 */
export function heldFront(transport: Transport, config: YamlPart = {}): Front {
  let started: Front | undefined
  const front = (): Front => started ?? expect.fail('not started yet')
  beforeAll(async () => {
    started = await startFront(transport, config)
  })
  afterEach(() => front().serves())
  afterAll(() => front().holds())
  return {
    get sidecar() {
      return front().sidecar
    },
    get token() {
      return front().token
    },
    send: (...given) => front().send(...given),
    answersTo: (bytes) => front().answersTo(bytes),
    refuses: (...given) => front().refuses(...given),
    serves: () => front().serves(),
    holds: () => front().holds(),
  }
}
