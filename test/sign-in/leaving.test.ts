import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { passUntil } from '../support/clock.ts'
import { startHoldingDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { formAuth, startBasicDevice, startDigestDevice, startFormDevice } from './devices.ts'

/** Each device comes with a function that ends its session, so that the next request must sign in again. */
const logins = {
  async basic() {
    const device = await startBasicDevice()
    return { device, end: () => {} }
  },
  async digest() {
    const device = await startDigestDevice()
    return {
      device,
      end() {
        device.nonce = `${device.nonce}0`
      },
    }
  },
  async form() {
    const device = await startFormDevice()
    return { device, end: () => device.sessions.clear() }
  },
} as const

describeTransports(
  'Clients that leave while the sidecar signs in at the device',
  (transport) => {
    // The parser reads the device's side, the transport is the client's.
    describe.each(transport === 'http1' ? ['strict', 'tolerant'] : ['strict'])(
      'with parser: %s',
      (parser) => {
        it.each(['basic', 'digest', 'form'] as const)(
          'C24 leave no device connection behind: %s',
          async (kind) => {
            const { device, end } = await logins[kind]()
            // The device closes each connection after one response, so only an unused connection would stay open.
            device.device.server.maxRequestsPerSocket = 1
            const file = join(temporaryDirectory(), 'device-password')
            writeFileSync(file, device.password)
            const upstream = {
              parser,
              auth: {
                ...(kind === 'form' ? formAuth() : { kind, user: 'admin' }),
                password: { file },
                check_path: '/home',
              },
            }
            const sidecar = await startSidecar({ transport, device: device.device, config: { upstream } })
            const token = await sidecar.token()
            const fields = ['Authorization', `Bearer ${token}`]
            // Eight moments for each of the three kinds of requests.
            for (let round = 0; round < 24; round += 1) {
              end()
              await sidecar.clock.advance(10_000)
              const connection = await sidecar.connect()
              const posts = round % 3 === 0
              const exchange = connection.start(posts ? { fields, method: 'POST', body: 'x' } : { fields })
              exchange.response.catch(() => {})
              // At any turn between the request and its response.
              for (let turn = 0; turn < 4 * (round % 8); turn += 1) await nextTurn()
              exchange.abort()
              connection.close()
            }
            const inFlight = async (): Promise<number[]> => {
              const figure = await sidecar.figures()
              return [figure('postern_connections'), figure('postern_upstream_in_flight')]
            }
            await expect.poll(inFlight).toEqual([0, 0])
            // A connection that was still opening when its client left is kept, unused, for four seconds.
            await passUntil(sidecar.clock, expect.poll(() => device.device.openConnections).toBe(0))
            // A new session is not renewed at once, so the clock moves.
            await sidecar.clock.advance(1_000_000)
            end()
            expect((await sidecar.request({ token })).status).toBe(200)
          },
        )
      },
    )

    it('C24 C25 those who wait for the login of another give their places back, and the login keeps one', async () => {
      const { device, held } = await startHoldingDevice()
      const file = join(temporaryDirectory(), 'device-password')
      writeFileSync(file, 'secret')
      const auth = { ...formAuth(), password: { file } }
      const config = { public_paths: ['/public'], upstream: { max_in_flight: 4, auth } }
      const sidecar = await startSidecar({ transport, device, config })
      const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
      const inFlight = (): Promise<number> => sidecar.metric('postern_upstream_in_flight')
      const waiting = []
      for (let count = 1; count <= 4; count += 1) {
        waiting.push((await sidecar.connect()).start({ fields }))
        await expect.poll(inFlight, { interval: 1 }).toBe(count)
      }
      for (const exchange of waiting) {
        exchange.response.catch(() => {})
        exchange.abort()
      }
      await expect.poll(inFlight, { interval: 1 }).toBe(1)
      const others = Array.from({ length: 4 }, () => sidecar.request({ path: '/public' }))
      await device.waitForRequests(4)
      expect(device.requests.map(({ target }) => target)).toEqual(['/login', ...Array(3).fill('/public')])
      held[0]?.writeHead(200, { 'Set-Cookie': 'sid=1' }).end()
      await device.waitForRequests(5)
      for (const response of held) response.end()
      expect((await Promise.all(others)).map(({ status }) => status)).toEqual(Array(4).fill(200))
      expect(device.requests.slice(1).every(({ target }) => target === '/public')).toBe(true)
    })
  },
  ['http1', 'h2'],
)
