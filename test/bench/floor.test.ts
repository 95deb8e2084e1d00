import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { freePort, listening, startChild } from '../../bench/child.ts'
import type { Row } from '../../bench/contest/row.ts'
import { costTable, ratioToFloor } from '../../bench/figures/p1f-floor.ts'
import { CAPABILITIES, capabilitiesUpTo } from '../../bench/floor/capabilities.ts'
import { PEER_HEADERS } from '../../bench/peers/peer.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { send } from '../support/client.ts'
import { type Device, startDevice } from '../support/device.ts'
import { type Transport, transports } from '../support/transports.ts'

const ROOT = join(import.meta.dirname, '../..')
const SERVER = join(ROOT, 'bench/floor/floor-server.ts')
const ALL = CAPABILITIES.at(-1) ?? ''
const CREDENTIAL = Object.entries(PEER_HEADERS).flat()

interface RunningFloor {
  readonly url: string
  /** The path of its log. */
  readonly log: string
}

let device: Device
/** By the last capability, and whether it speaks TLS. */
const floors = new Map<string, RunningFloor>()

async function startFloor(capabilities: string, tls: boolean): Promise<void> {
  const port = await freePort()
  const folder = temporaryDirectory()
  const log = join(folder, 'log')
  const args = [SERVER, String(port), new URL(device.url).port, capabilities, ...(tls ? [folder] : [])]
  const child = await startChild(process.execPath, args, { outputTo: log })
  closeLater(async () => {
    await child.stop()
  })
  await listening(port, child)
  floors.set(`${capabilities} ${tls}`, { url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`, log })
}

const floorOf = (capabilities: string, tls: boolean): RunningFloor =>
  floors.get(`${capabilities} ${tls}`) ?? expect.fail('every kind is started')

beforeAll(async () => {
  device = await startDevice()
  await Promise.all([false, true].flatMap((tls) => ['', ALL].map((names) => startFloor(names, tls))))
})

/** Each transport without capabilities and with all of them. */
const KINDS: readonly (readonly [Transport, string])[] = transports.flatMap((transport) =>
  ['', ALL].map((names) => [transport, names] as const),
)

describe('The floor', () => {
  it.for(KINDS)(
    'forwards over %s without the token, with the capabilities up to "%s"',
    async ([transport, names]) => {
      const { url } = floorOf(names, transport !== 'http1')
      const before = device.requests.length
      const remaining: number[] = []
      for (let count = 1; count <= 3; count += 1) {
        const response = await send({
          transport,
          url,
          path: '/status',
          fields: [...CREDENTIAL, 'X-Mine', 'a b'],
        })
        expect(response).toMatchObject({ status: 200, text: 'from the device' })
        expect(response.header('Content-Type')).toBe('text/plain')
        remaining.push(Number(response.header('X-RateLimit-Remaining')))
      }
      const [first = 0] = remaining
      expect(remaining).toEqual([first, first - 1, first - 2])
      const asked = device.requests[before]
      expect(asked).toMatchObject({ method: 'GET', target: '/status', version: '1.1' })
      expect(asked?.values('host')).toEqual([new URL(url).host])
      expect(asked?.values('x-mine')).toEqual(['a b'])
      expect(asked?.values('connection')).toEqual(['keep-alive'])
      expect(asked?.values('x-forwarded-for')).toEqual(['127.0.0.1'])
      expect(asked?.values('authorization')).toEqual([])
      await expect(send({ transport, url, fields: ['Authorization', 'Bearer other'] })).rejects.toThrow()
      expect(device.requests.length - before, 'nothing with another token').toBe(3)
      expect(device.connections, 'one for each floor').toBeLessThanOrEqual(floors.size)
    },
  )

  it('refuses an invalid head, and writes an access line for each request with an id of its own', async () => {
    const { url, log } = floorOf(ALL, false)
    const before = device.requests.length
    await expect(send({ transport: 'http1', url, fields: [...CREDENTIAL, 'X Mine', 'a'] })).rejects.toThrow()
    expect(device.requests).toHaveLength(before)
    for (let count = 0; count < 2; count += 1)
      await send({ transport: 'http1', url, path: '/logged', fields: CREDENTIAL })
    const ids = device.requests.slice(before).map((request) => request.header('X-Request-Id'))
    expect(new Set(ids).size).toBe(2)
    await expect.poll(() => readFile(log, 'utf8')).toMatch(/"method":"GET","path":"\/logged".*"status":200/)
  })

  it('has each capability with those before it, and refuses an unknown one', () => {
    expect([...capabilitiesUpTo('')]).toEqual([])
    expect([...capabilitiesUpTo('strict')]).toEqual(['deadlines', 'caps', 'strict'])
    expect(() => capabilitiesUpTo('speed')).toThrow('no such capability: speed')
  })
})

describe('The figure beside the floor', () => {
  const row = (name: string, costs: readonly number[]): Row => ({
    name,
    version: '1',
    does: 'nothing else',
    generator: 'wrk',
    samples: costs.map((cpuPerRequest) => ({
      requestsPerSecond: 1_000,
      p50: 0.1,
      p90: 0.2,
      p99: 0.3,
      cpuPerRequest,
      busy: 0.99,
      failed: 0,
    })),
  })
  const rows = [
    row('relay', [16, 18]),
    row('floor', [20, 20]),
    row('+ log', [23, 23]),
    row('postern', [30, 26]),
  ]

  it('compares Postern with it round by round', () => {
    const check = ratioToFloor('P1f', 'HTTP/1.1', rows, 1.4)
    expect(check).toMatchObject({ value: 1.4, range: [1.3, 1.5], better: 'less', reach: 1.4 })
    expect(ratioToFloor('P1f', 'HTTP/1.1', [], 1.4).value).toBeUndefined()
  })

  it('shows what each row adds to the row above, and its ratio to the floor', () => {
    const { head, rows: cells } = costTable('HTTP/1.1', rows)
    const column = (name: string): unknown[] => cells.map((cell) => cell[head.indexOf(name)])
    expect(column('CPU µs/req')).toEqual(['17.0', '20.0', '23.0', '28.0'])
    expect(column('adds µs')).toEqual(['-', '3.0', '3.0', '5.0'])
    expect(column('× floor')).toEqual(['0.85', '1.00', '1.15', '1.40'])
  })
})
