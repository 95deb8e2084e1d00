import type { ServerResponse } from 'node:http'
import { expect } from 'vitest'
import { type MovableClock, stillClock } from '../../support/clock.ts'
import { type Device, readBody, startDevice } from '../../support/device.ts'
import { announce, drip, hold } from '../drip.ts'
import { type Case, casesOf, type Given } from './case.ts'

/** How a device answers its first request, and how the later ones. */
type Answer = (response: ServerResponse, clock: MovableClock) => unknown

const plainly: Answer = (response) => response.end('ok')

/** A check of a device, which may take `most` ms, and the steps of the clock until the device sees its end, and send `requests`. */
async function lookAt(
  [first, later]: readonly [Answer, Answer],
  most: number,
  requests: number,
  given: (device: Device) => Given = () => ({}),
): Promise<Given> {
  const clock = stillClock()
  const begin = clock.monotonic()
  const device = await startDevice(async (request, response) => {
    await readBody(request)
    response.setHeader('Content-Type', 'text/html')
    await (device.requests.length === 1 ? first : later)(response, clock)
  })
  const { asked, set = [], ...others } = given(device)
  return {
    set: [`upstream.url=${device.url}`, ...set],
    asked: { clock, ...asked },
    after() {
      expect(clock.monotonic() - begin).toBeLessThan(most + SEEN)
      expect(device.requests.length).toBeLessThanOrEqual(requests)
    },
    ...others,
  }
}

/** How much time (ms) may pass on the clock until a device has seen that its client left. */
const SEEN = 5_000

const page = () => ({ asked: { pages: ['/page'] }, name: 'page /page' })

/** Devices that end a response late, or never. */
export const SLOW_CASES: readonly Case[] = [
  ...casesOf('device', {
    'no end': {
      'H374 a page that comes byte by byte, at which nothing more is tried': () =>
        lookAt([drip, drip], 6_000, 1),
    },
    'not finished': {
      'H374 a device that answers one request and no other': () => lookAt([plainly, hold], 40_000, 3),
      'H374 the same with other timeouts': () =>
        lookAt([plainly, hold], 8_000, 5, () => ({
          set: ['upstream.connect_timeout=1s', 'upstream.response_timeout=2s'],
        })),
    },
  }),
  ...casesOf('page', {
    answers: {
      'H374 a stream of events, which may go on': () => lookAt([drip, drip], 6_000, 1, page),
    },
    'not finished': {
      'H374 a device that only says that it is at work': () => lookAt([announce, announce], 40_000, 1, page),
    },
  }),
]
