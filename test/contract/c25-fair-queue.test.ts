import { expect, it } from 'vitest'
import { startHoldingDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import type { Exchange } from '../support/message.ts'
import { startSidecar } from '../support/sidecar.ts'
import { waitForQueued } from '../support/waiting.ts'

it.each([
  ['the addresses of one IPv6 /64 are one client', '2001:db8:1:2::1', '2001:db8:1:2::2', true],
  ['two IPv6 networks are two clients', '2001:db8:1:2::1', '2001:db8:1:3::1', false],
  ['one IPv4 address is one client', '192.0.2.1', '192.0.2.1', true],
  ['two IPv4 addresses are two clients', '192.0.2.1', '192.0.2.2', false],
])('C25 C17 in a full queue %s', async (_name, first, second, isOne) => {
  const { device, held } = await startHoldingDevice()
  const upstream = { max_in_flight: 1, queue: { size: 2, timeout: '1h' } }
  const config = { listen: { trusted_proxies: ['127.0.0.1'] }, upstream }
  const sidecar = await startSidecar({ device, config })
  const token = `Bearer ${await sidecar.token()}`
  const ask = async (client: string, path: string): Promise<Exchange> => {
    const fields = ['Authorization', token, 'X-Forwarded-For', client]
    const exchange = (await sidecar.connect()).start({ path, fields })
    exchange.response.catch(() => {})
    return exchange
  }
  await ask('198.51.100.1', '/held')
  await device.waitForRequests(1)
  await ask(first, '/first')
  await waitForQueued(sidecar, 1)
  const last = await ask(second, '/second')
  await waitForQueued(sidecar, 2)
  // Another client displaces the last request of a client with two, but not one of two clients with one each.
  const other = await ask('198.51.100.2', '/other')
  expectError(await (isOne ? last : other).response, 500, 'overloaded')
  held[0]?.end()
  await device.waitForRequests(2)
  held[1]?.end()
  await device.waitForRequests(3)
  expect(device.requests.map(({ target }) => target)).toEqual([
    '/held',
    '/first',
    isOne ? '/other' : '/second',
  ])
})
