import { expect, it } from 'vitest'
import { measureWay, WAYS } from '../../bench/fleet/f4-messages.ts'
import { startServer } from '../../bench/fleet/server.ts'
import { parseInfo, usageBetween } from '../../bench/fleet/usage.ts'
import { closeLater } from '../support/cleanup.ts'
import { needs } from '../support/tools.ts'

it.for(WAYS)('three followers learn of each revocation through $name', { timeout: 60_000 }, async (way) => {
  needs('redis-server')
  const server = await startServer(undefined)
  closeLater(() => server.stop())
  const point = await measureWay(server, way, 3)
  expect(point.latency.count).toBe(300)
  expect(point.revocation.processor).toBeGreaterThan(0)
  if (way.name === 'tracking') expect(point.perToken).toBeGreaterThan(40)
})

const INFO = [
  '# Memory',
  'used_memory:1000',
  'mem_clients_normal:300',
  'used_cpu_sys:0.5',
  'used_cpu_user:1.25',
  'total_net_input_bytes:10',
  'total_net_output_bytes:20',
  'cmdstat_evalsha:calls=3,usec=30,usec_per_call=10.00',
  'cmdstat_set:calls=6,usec=6,usec_per_call=1.00',
]

it('what an operation costs is the difference of two readings of INFO', () => {
  const before = parseInfo(INFO.join('\r\n'))
  expect(before).toMatchObject({ memory: 1_000, connections: 300, processor: 1_750_000 })
  const later = INFO.join('\r\n')
    .replace('sys:0.5', 'sys:0.6')
    .replace('evalsha:calls=3', 'evalsha:calls=13')
    .replace('set:calls=6', 'set:calls=26')
    .replace('input_bytes:10', 'input_bytes:1010')
  const usage = usageBetween(before, parseInfo(later), 10)
  expect(usage.processor).toBeCloseTo(10_000)
  // The commands inside a script are no commands of a connection.
  expect(usage).toMatchObject({ commands: 1, received: 100, sent: 0 })
})

it('a reading of INFO without a counter is an error that names it', () => {
  expect(() => parseInfo('used_memory:1\r\n')).toThrow('INFO has no used_cpu_user')
})
