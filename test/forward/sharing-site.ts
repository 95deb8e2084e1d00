import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect } from 'vitest'
import { fieldValues } from '../../src/http/fields.ts'
import { passing } from '../fleet/passing.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import type { Connection, Exchange, Request } from '../support/message.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import type { Transport } from '../support/transports.ts'

/** A sidecar that shares `/status` and all below `/api/`, and a device that holds what is asked for there. */
export interface SharingSite {
  readonly sidecar: TestSidecar
  readonly device: Device
  readonly token: string
  /** The held requests, in order of arrival. The test answers them. */
  readonly held: readonly Held[]
  /** Waits until so many requests were held since the start, and resolves with the last one. */
  waitForHeld(count: number): Promise<Held>
  /** The same, while time passes: the device gets one more place when those at it are silent. */
  passUntilHeld(count: number): Promise<Held>
  /** Another request to the API has come to the sidecar, which `ask` did not send. */
  alsoCame(): void
  /** Sends a request for `/status` on a connection of its own, and waits until the sidecar has passed it on. */
  ask(request?: Request & { readonly token?: string }): Promise<Asked>
}

export interface Held {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export type Asked = Exchange & { readonly connection: Connection }

const LIMIT = 1_000_000

/** Until a response is over, others may join it, however long the test takes. After the default time it is a stream. */
export const ENDLESS: YamlPart = { stream_after: '1h' }

/** @param share replaces the paths, and more */
export async function startSharingSite(
  transport: Transport,
  share: YamlPart = {},
  upstream: YamlPart = {},
  clock: MovableClock = stillClock(),
): Promise<SharingSite> {
  const held: Held[] = []
  const device = await startDevice((request, response) => {
    if (/^\/(?:status|api\/|hold)/.test(request.url ?? '')) held.push({ request, response })
    else response.end('at once')
  })
  const shared = { paths: ['/status', '/api/'], ...share }
  const sidecar = await startSidecar({
    transport,
    device,
    clock,
    config: { upstream: { share: shared, ...upstream }, oauth: { revocation_path: '/oauth/revoke' } },
  })
  const token = await sidecar.token()
  const probe = await sidecar.connect()
  /** How many requests were sent to the API. Each counts in the window, the first probe as well. */
  let sent = 0

  /** The gate passes a request on in the same turn in which it counts it. A probe without a token is refused and counts, too. */
  async function untilPassedOn(): Promise<void> {
    await expect
      .poll(
        async () => {
          sent += 1
          const { fields } = await probe.send({ path: '/probe' })
          return LIMIT - Number(fieldValues(fields, 'x-ratelimit-remaining')[0]) - sent
        },
        { interval: 5 },
      )
      .toBe(0)
  }

  return {
    sidecar,
    device,
    token,
    held,
    async passUntilHeld(count) {
      await expect.poll(passing([sidecar], () => held.length)).toBeGreaterThanOrEqual(count)
      return held[count - 1] as Held // the poll has checked the length
    },
    async waitForHeld(count) {
      await expect.poll(() => held.length, { interval: 5 }).toBeGreaterThanOrEqual(count)
      return held[count - 1] as Held // the poll has checked the length
    },
    alsoCame() {
      sent += 1
    },
    async ask({ token: own = token, fields = [], ...request } = {}) {
      const connection = await sidecar.connect()
      const exchange = connection.start({
        path: '/status',
        ...request,
        fields: ['Authorization', `Bearer ${own}`, ...fields],
      })
      exchange.response.catch(() => {})
      sent += 1
      await untilPassedOn()
      return Object.defineProperties({ connection } as Asked, Object.getOwnPropertyDescriptors(exchange))
    },
  }
}
