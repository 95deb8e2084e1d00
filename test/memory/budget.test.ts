import { expect, it } from 'vitest'
import { budgetOf, keysAbove } from '../../src/memory/budget.ts'
import { CONNECTION, TLS_CONNECTION } from '../../src/memory/costs.ts'
import { memoryBounds, memoryInUse } from '../../src/memory/machine-memory.ts'

const MIB = 1024 ** 2

const reader = (files: Readonly<Record<string, string>>) => (path: string) => files[path]

const V2 = {
  '/proc/self/cgroup': '0::/system.slice/postern.service\n',
  '/sys/fs/cgroup/system.slice/postern.service/memory.max': 'max\n',
  '/sys/fs/cgroup/system.slice/memory.max': `${256 * MIB}\n`,
}

const V1 = {
  '/proc/self/cgroup': '9:name=systemd:/\n4:cpu,memory:/pod/one\n0::/\n',
  '/sys/fs/cgroup/memory/pod/one/memory.limit_in_bytes': '9223372036854771712\n',
  '/sys/fs/cgroup/memory/pod/memory.limit_in_bytes': `${512 * MIB}\n`,
}

const [total, heap] = [4_096 * MIB, 2_048 * MIB]

it.each([
  ['version 2', V2, 256, 'the cgroup /sys/fs/cgroup/system.slice'],
  ['version 1', V1, 512, 'the cgroup /sys/fs/cgroup/memory/pod'],
  ['none', {}, 2_048, "V8's heap"],
])('H248 the least bound counts, also that of a cgroup above the own one: %s', (_, files, mib, by) => {
  expect(memoryBounds({ read: reader(files), total, heap })[0]).toEqual({ bytes: mib * MIB, by })
})

it('H248 the root of a container has its limit where no path of the host exists', () => {
  const files = { '/proc/self/cgroup': '0::/docker/0123\n', '/sys/fs/cgroup/memory.max': `${128 * MIB}\n` }
  expect(memoryBounds({ read: reader(files), total, heap })[0].bytes).toBe(128 * MIB)
})

it.each([128, 256, 512])('H248 `auto` leaves the process what it needs itself, of %i MiB', (mib) => {
  const bounds = memoryBounds({ read: reader({}), total: mib * MIB, heap: 0.5 * mib * MIB })
  const { limit, isGiven } = budgetOf('auto', bounds)
  expect(isGiven).toBe(false)
  expect(limit).toBeGreaterThan(0.2 * mib * MIB)
  expect(limit + 56 * MIB).toBeLessThan(0.75 * mib * MIB)
})

it('H248 `auto` takes at most 512 MiB, or what two of the configured hashes need', () => {
  const large = memoryBounds({ read: reader({}), total: 24_576 * MIB, heap: 9_830 * MIB })
  expect(budgetOf('auto', large)).toMatchObject({ limit: 512 * MIB, isCapped: true })
  expect(budgetOf('auto', large, 19 * MIB).limit).toBe(512 * MIB)
  expect(budgetOf('auto', large, 1_024 * MIB).limit).toBe(2_048 * MIB)
  expect(budgetOf(7_000 * MIB, large).limit).toBe(7_000 * MIB)
  const small = memoryBounds({ read: reader({}), total: 256 * MIB, heap: 128 * MIB })
  expect(budgetOf('auto', small, 1_024 * MIB)).toMatchObject({ limit: 90 * MIB, isCapped: false })
})

it('H248 a size is taken as it is', () => {
  expect(budgetOf(32 * MIB, [{ bytes: total, by: 'the machine' }])).toMatchObject({
    limit: 32 * MIB,
    isGiven: true,
  })
})

it('H248 keys that admit more than the account has are named', () => {
  const keys = {
    secure: true,
    maxConnections: 1_000,
    maxTunnels: 64,
  }
  expect(keysAbove(32 * MIB, keys).map(({ key }) => key)).toEqual(['listen.max_connections'])
  expect(keysAbove(4 * MIB, keys).map(({ key }) => key)).toContain('upstream.max_tunnels')
  expect(keysAbove(1_024 * MIB, keys)).toEqual([])
})

it.each([
  ['with TLS', true, TLS_CONNECTION],
  ['in cleartext', false, CONNECTION],
])('H247 as many connections %s fit as the account admits', (_, secure, cost) => {
  const keys = { secure, maxConnections: 100_000 }
  expect(keysAbove(100 * cost, { ...keys, maxTunnels: 1 })).toContainEqual({
    key: 'listen.max_connections',
    fits: '100',
  })
})

it.each([
  ['2730 connections in cleartext', false, '2730'],
  ['356 connections with TLS', true, '356'],
])('H247 an account of 32 MiB has room for %s', (_, secure, fits) => {
  const keys = { secure, maxConnections: 100_000, maxTunnels: 1 }
  expect(keysAbove(32 * MIB, keys)).toContainEqual({ key: 'listen.max_connections', fits })
})

it('H247 the memory in use is that of the fullest bound, without the cached files of a cgroup', () => {
  const files = {
    ...V2,
    '/proc/self/status': `RssAnon:\t${10 * 1024} kB\n`,
    '/sys/fs/cgroup/system.slice/memory.current': `${200 * MIB}\n`,
    '/sys/fs/cgroup/system.slice/memory.stat': `anon 1\ninactive_file ${50 * MIB}\nactive_file ${22 * MIB}\n`,
  }
  expect(memoryInUse(256 * MIB, reader(files))).toBe(0.5)
  expect(memoryInUse(16 * MIB, reader({ '/proc/self/status': `RssAnon:\t${8 * 1024} kB\n` }))).toBe(0.5)
  expect(memoryInUse(16 * MIB, reader({}))).toBe(0)
})
