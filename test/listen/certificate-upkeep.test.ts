import { once } from 'node:events'
import { readFileSync, renameSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { canonicalHost } from '../../src/http/ip.ts'
import { wantedNames } from '../../src/listen/tls-material.ts'
import type { MachineNames } from '../../src/system/machine-names.ts'
import { type SidecarOptions, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { connectAs, namesOf } from './trusting-client.ts'

const DAY = 86_400_000
/** How often the names of the machine are compared with the certificate (ms). */
const LOOK = 60_000
const LOOPBACK = ['localhost', '127.0.0.1', '0:0:0:0:0:0:0:1']
const start = (options: SidecarOptions): Promise<TestSidecar> =>
  startSidecar({ ...options, transport: 'tls', config: { listen: { tls: 'auto', idle_timeout: '1d' } } })

const stored = (sidecar: TestSidecar): string =>
  readFileSync(join(sidecar.directory, 'state', 'tls', 'cert.pem'), 'utf8')

const remade = (sidecar: TestSidecar): readonly unknown[] =>
  sidecar
    .logLines()
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'self-signed certificate: made anew, with the same key')

async function statusOn(socket: Socket): Promise<string | undefined> {
  socket.write('GET / HTTP/1.1\r\nHost: box\r\n\r\n')
  const [response] = await once(socket, 'data')
  return String(response).split(' ')[1]
}

it('H112 a new address gets into the served certificate, and one that is down for a moment changes nothing', async () => {
  let addresses = ['192.0.2.1']
  let looks = 0
  const machine = (): MachineNames => {
    looks += 1
    return { names: ['box'], addresses }
  }
  const sidecar = await start({ machine })
  const trusted = stored(sidecar)
  const open = await connectAs('box', sidecar.url, trusted)
  expect(namesOf(open)).toEqual([...LOOPBACK, 'box', '192.0.2.1'])

  expect(await statusOn(open)).toBe('401')
  addresses = []
  const before = looks
  await sidecar.clock.advance(3 * LOOK)
  addresses = ['192.0.2.1']
  await sidecar.clock.advance(3 * LOOK)
  expect(looks).toBe(before + 6)
  expect([stored(sidecar), remade(sidecar)]).toEqual([trusted, []])

  addresses = ['192.0.2.1', '2001:db8::1', '192.0.2.2']
  await sidecar.clock.advance(LOOK)
  await expect
    .poll(() => remade(sidecar))
    .toMatchObject([{ added: ['192.0.2.2', '2001:db8::1'], removed: [] }])
  await connectAs('192.0.2.2', sidecar.url, trusted)
  await connectAs('2001:db8::1', sidecar.url, stored(sidecar))
  expect(await statusOn(open)).toBe('401')
})

it('H113 the certificate is renewed while it is served, 30 days before it expires', async () => {
  const sidecar = await start({ machine: () => ({ names: ['box'], addresses: [] }) })
  const trusted = stored(sidecar)
  await sidecar.clock.leap(3652 * DAY - 29 * DAY)
  await expect.poll(() => remade(sidecar)).toMatchObject([{ added: [], removed: [], renewed: true }])
  const socket = await connectAs('box', sidecar.url, trusted)
  expect(Date.parse(socket.getPeerCertificate().valid_to)).toBeGreaterThan(Date.now() + 19 * 365 * DAY)
  // A clock that was ahead for a while leaves a certificate that is valid now.
  expect(Date.parse(socket.getPeerCertificate().valid_from)).toBeLessThan(Date.now())
})

it('addresses that cannot be read are one warning, and the certificate has the names', async () => {
  const sidecar = await start({ machine: () => ({ names: ['box'], addresses: [], problem: 'no netlink' }) })
  await connectAs('box', sidecar.url, stored(sidecar))
  const warnings = sidecar.logLines().filter((line) => line.includes('no netlink'))
  expect(warnings).toHaveLength(1)
})

it('only names that a certificate can hold get into it, IPv4 first, and 100 at most', () => {
  const names = [
    'Box',
    'my_box',
    'box.example.com',
    'büro',
    'a b',
    '',
    '-a',
    'a..b',
    '1.2.3',
    `${'a'.repeat(64)}.b`,
  ]
  const addresses = ['2001:DB8::1', '192.0.2.1', '::ffff:192.0.2.9', 'fe80::1%eth0']
  expect(wantedNames('auto', () => ({ names, addresses }))).toEqual([
    'localhost',
    '127.0.0.1',
    '::1',
    'box',
    'my_box',
    'box.example.com',
    '192.0.2.1',
    '192.0.2.9',
    '2001:db8::1',
  ])
  const many = Array.from({ length: 300 }, (_, i) => `2001:db8::${i + 1}`)
  expect(wantedNames('auto', () => ({ names: [], addresses: [...many, '192.0.2.1'] }))).toHaveLength(100)
  expect(canonicalHost('*.example.com')).toBe('*.example.com')
  expect(['*', '*.', 'a.*.b', '[::1]', 'a:80', 'https://a'].map(canonicalHost)).toEqual(
    Array(6).fill(undefined),
  )
})

it('H114 H285 a renewed certificate that a full disk does not take is served from memory, said once, and stored when there is room', async () => {
  const sidecar = await start({})
  const folder = join(sidecar.directory, 'state', 'tls')
  const said = (text: string): number => sidecar.logLines().filter((line) => line.includes(text)).length
  const [UNSTORED, STORED] = ['certificate: could not be stored', 'certificate: stored']
  const before = stored(sidecar)
  renameSync(folder, `${folder}.away`)
  await sidecar.clock.leap(10 * 365 * DAY - 20 * DAY)
  await expect.poll(() => said(UNSTORED)).toBe(1)
  await expect.poll(sidecar.certificate).not.toBe(before)
  const served = await sidecar.certificate()
  // A second renewal, while the first one waits for room.
  await sidecar.clock.leap(10 * 365 * DAY - 20 * DAY)
  await expect.poll(() => remade(sidecar).length).toBe(2)
  expect(await sidecar.certificate()).not.toBe(served)
  expect([said(UNSTORED), said(STORED)]).toEqual([1, 0])
  renameSync(`${folder}.away`, folder)
  await sidecar.clock.advance(LOOK)
  await expect.poll(() => said(STORED)).toBe(1)
  expect(stored(sidecar).trim()).toBe((await sidecar.certificate()).trim())
  expect(remade(sidecar)).toHaveLength(2)
})
