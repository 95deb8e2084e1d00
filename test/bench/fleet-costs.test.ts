import { expect, it } from 'vitest'
import { questionFaults, type RunUsage } from '../../bench/fleet/f1-request-cost.ts'
import { sidecarCores } from '../../bench/fleet/f2-several-sidecars.ts'
import { parseInfo, type Usage, usageBetween } from '../../bench/fleet/usage.ts'

const usage = (processor: number, commands: number, received: number, sent: number): Usage => ({
  processor,
  commands,
  received,
  sent,
})

it('a request that asks for its token, and one that is not counted at the server, are faults', () => {
  const usages = (local: number, shared: number, requests = 10_000): Map<string, RunUsage[]> =>
    new Map([
      ['shared tokens', [{ ...usage(1, local, 0, 0), requests, seconds: 2 }]],
      ['shared tokens and windows', [{ ...usage(1, shared, 0, 0), requests, seconds: 2 }]],
    ])
  expect(questionFaults(usages(0.0002, 0.03))).toEqual([])
  expect(questionFaults(usages(1, 1))).toEqual(['shared tokens: admitted requests asked the shared store'])
  // A busy machine: the sidecars ask three times on their own beside 15 requests.
  expect(questionFaults(usages(3 / 15, 0.5, 15))).toEqual([])
  expect(questionFaults(usages(0, 0.0001))).toEqual([
    'shared tokens and windows: requests were not counted in the shared store',
  ])
})

it('sidecars get every core but that of the load', () => {
  expect(sidecarCores({ proxyCore: 0, otherCore: 1 }, 2)).toEqual([0])
  expect(sidecarCores({ proxyCore: 0, otherCore: 1 }, 4)).toEqual([0, 2, 3])
  expect(sidecarCores({ proxyCore: undefined, otherCore: undefined }, 4)).toEqual([undefined])
})

const INFO = [
  '# CPU',
  'used_cpu_sys:0.5',
  'used_cpu_user:1.25',
  'total_net_input_bytes:10',
  'total_net_output_bytes:20',
  'cmdstat_evalsha:calls=3,usec=30,usec_per_call=10.00',
  'cmdstat_set:calls=6,usec=6,usec_per_call=1.00',
]

it('what an operation costs is the difference of two readings of INFO', () => {
  const before = parseInfo(INFO.join('\r\n'))
  expect(before).toMatchObject({ processor: 1_750_000 })
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
  expect(() => parseInfo('used_cpu_sys:1\r\n')).toThrow('INFO has no used_cpu_user')
})
