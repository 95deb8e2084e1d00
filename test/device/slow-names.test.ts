import dns from 'node:dns/promises'
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest'
import { parseStoreUrl } from '../../src/config/store-fields.ts'
import { createConnections } from '../../src/device/connections.ts'
import { failureOf } from '../../src/device/failure.ts'
import { createSocketOpener } from '../../src/device/open-socket.ts'
import { sendOwnRequest } from '../../src/device/own-request.ts'
import { connect } from '../../src/fleet/connection.ts'
import { createLookup } from '../../src/system/lookup.ts'
import { runCheck } from '../commands/run-check.ts'
import { startBlackHole } from '../support/black-hole.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import { PATIENCE } from '../support/running-test.ts'
import { startSidecar } from '../support/sidecar.ts'

/** The default of `upstream.connect_timeout` (ms). */
const CONNECT = 5_000

const HOME = [{ address: '127.0.0.1', family: 4 }]

/** The look-ups of this process answer when the test does. */
const resolver = vi.spyOn(dns, 'lookup')
syncBuiltinESMExports()
let answers: PromiseWithResolvers<typeof HOME>[] = []

beforeEach(() => {
  answers = []
  resolver.mockImplementation(() => {
    const answer = Promise.withResolvers<typeof HOME>()
    answers.push(answer)
    // The cast holds because every caller of this process asks for all addresses.
    return answer.promise as never
  })
})

/** The process resolves few names at a time, for the test files after this one, too. */
afterEach(() => {
  for (const answer of answers) answer.resolve(HOME)
})

afterAll(() => {
  resolver.mockRestore()
  syncBuiltinESMExports()
})

/** Each test has a name of its own: the process remembers names. */
async function startNamed(name: string) {
  const device = await startDevice()
  return { device, url: device.url.replace('127.0.0.1', name) }
}

it('H46 a request whose look-up is late is dns_timeout, and a later one uses its result', async () => {
  const { device, url } = await startNamed('late.example')
  const sidecar = await startSidecar({ device, config: { upstream: { url } } })
  const token = await sidecar.token()
  const waiting = sidecar.request({ token })
  await expect.poll(() => answers).toHaveLength(1)
  await sidecar.clock.advance(CONNECT - 1)
  expect(await sidecar.metrics()).not.toContain('reason="dns_timeout"} 1')
  await sidecar.clock.advance(1)
  const late = await waiting
  expectError(late, 500, 'upstream_unavailable')
  expect(late.header('Proxy-Status')).toBe('postern; error=dns_timeout')
  expect(await sidecar.metrics()).toContain('reason="dns_timeout"')
  answers[0]?.resolve(HOME)
  expect((await sidecar.request({ token })).status).toBe(200)
  expect(answers).toHaveLength(1)
})

it('C25 a slow name is looked up once for all the connections that wait for it, and for those after them', async () => {
  const { device, url } = await startNamed('slow.example')
  const upstream = { url, reuse: 'never', max_in_flight: 20 }
  const sidecar = await startSidecar({ device, config: { upstream } })
  const token = await sidecar.token()
  const responses = Promise.all(Array.from({ length: 20 }, () => sidecar.request({ token })))
  await expect.poll(() => answers).toHaveLength(1)
  answers[0]?.resolve(HOME)
  expect((await responses).map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200))
  expect(answers).toHaveLength(1)
})

it('H46 an address that could not be connected to is looked up again', async () => {
  const { device, url } = await startNamed('moved.example')
  const sidecar = await startSidecar({ device, config: { upstream: { url } } })
  const token = await sidecar.token()
  const first = sidecar.request({ token })
  await expect.poll(() => answers).toHaveLength(1)
  // Nothing listens there.
  answers[0]?.resolve([{ address: '127.0.0.77', family: 4 }])
  expectError(await first, 500, 'upstream_unavailable')
  const second = sidecar.request({ token })
  await expect.poll(() => answers).toHaveLength(2)
  answers[1]?.resolve(HOME)
  expect((await second).status).toBe(200)
})

it('H107 check says that the name is slow to resolve, and what to do', async () => {
  const { stdout } = await runCheck('http://check.example', ['upstream.connect_timeout=300ms'])
  expect(stdout).toContain('(dns_timeout)')
  expect(stdout).toContain('takes longer to resolve than upstream.connect_timeout')
})

it('H46 a connection that waits for the device, and not for its name, is connection_timeout', async () => {
  const names = createLookup(async () => HOME)
  const origin = (await startBlackHole()).replace('127.0.0.1', 'device.example')
  const target = {
    origin,
    socketPath: undefined,
    reuse: 'shared',
    parser: 'auto',
  } as const
  const clock = stillClock()
  const deadlines = { connect: CONNECT, response: PATIENCE, idle: PATIENCE }
  const connections = createConnections(target, deadlines, clock, { names })
  closeLater(() => connections.close())
  const failed = sendOwnRequest(connections, { method: 'GET', target: '/', fields: [] }, false)
  expect(failureOf(await passUntil(clock, failed).catch((error: unknown) => error))).toBe(
    'connection_timeout',
  )
})

/** Opens connections to a device that answers no SYN. `asked`: how often its name was looked up. */
async function openToBlackHole() {
  let asked = 0
  const names = createLookup(async () => {
    asked += 1
    return HOME
  }, stillClock())
  const origin = (await startBlackHole()).replace('127.0.0.1', 'device.example')
  const target = { origin, socketPath: undefined, reuse: 'shared', parser: 'auto' } as const
  return { target, names, asked: () => asked }
}

it('H46 a connection that is given up before it is open says nothing of its address', async () => {
  const { target, names, asked } = await openToBlackHole()
  const openSocket = createSocketOpener(target, names)
  for (let i = 0; i < 2; i += 1) {
    const socket = openSocket(() => {})
    await once(socket, 'lookup')
    socket.destroy()
    await once(socket, 'close')
  }
  expect(asked()).toBe(1)
})

it('H46 an address to which no connection opens in time is looked up again', async () => {
  const { target, names, asked } = await openToBlackHole()
  const clock = stillClock()
  const deadlines = { connect: CONNECT, response: PATIENCE, idle: PATIENCE }
  const connections = createConnections(target, deadlines, clock, { names })
  closeLater(() => connections.close())
  for (let i = 0; i < 2; i += 1) {
    const failed = sendOwnRequest(connections, { method: 'GET', target: '/', fields: [] }, false)
    expect(failureOf(await passUntil(clock, failed).catch((error: unknown) => error))).toBe(
      'connection_timeout',
    )
  }
  expect(asked()).toBe(2)
})

it('H135 a shared store whose name is slow to resolve says so', async () => {
  const parsed = parseStoreUrl('valkey://store.example')
  if ('problem' in parsed) throw new Error(parsed.problem)
  const settings = {
    address: parsed.value,
    prefix: 'postern',
    timeout: 300,
    replicas: 0,
    tls: {},
  }
  const clock = stillClock()
  const connecting = connect(settings, new AbortController().signal, clock)
  const refused = expect(connecting).rejects.toThrow('the name store.example is not resolved within 300ms')
  await expect.poll(() => answers).toHaveLength(1)
  await clock.advance(300)
  await refused
})
