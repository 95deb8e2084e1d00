import type { ServerResponse } from 'node:http'
import process from 'node:process'
import { expect, it } from 'vitest'
import { connect } from '../support/client.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { BrokenTransfer, type Connection, type Exchange } from '../support/message.ts'
import { startSidecar } from '../support/sidecar.ts'
import type { Transport } from '../support/transports.ts'

/** All requests together. More with `POSTERN_SHARING_OPERATIONS=100000`. */
const OPERATIONS = Number(process.env.POSTERN_SHARING_OPERATIONS ?? 1000)

const CLIENTS = 24
const PATHS = ['/a', '/b', '/below/c', '/below/d']
const WRITES = ['POST', 'PUT', 'DELETE', 'GET'] as const

/** The same choices for the same seed; how they meet each other depends on the machine. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** A device whose pages show their version, again and again. It is slow at random, and breaks off one response in fifty. */
async function startVersions(random: (below: number) => number, { pause }: Pick<MovableClock, 'pause'>) {
  const versions = new Map<string, number>()
  const now = (path: string): number => versions.get(path) ?? 0
  const reads = { count: 0 }

  async function answer(response: ServerResponse, pieces: readonly string[]): Promise<void> {
    const cutAt = random(50) === 0 ? random(pieces.length + 1) : Number.POSITIVE_INFINITY
    const length = pieces.join('').length
    if (random(2) === 0) response.setHeader('Content-Length', length)
    for (const [i, piece] of pieces.entries()) {
      if (random(3) === 0) await pause(random(3))
      if (i === cutAt) {
        response.destroy()
        return
      }
      response.write(piece)
    }
    response.end()
  }

  const device = await startDevice(async (request, response) => {
    const [path = '', written = ''] = (request.url ?? '').split('?for=')
    if (random(3) > 0) await pause(random(4))
    if (path === '/write') {
      const version = now(written) + 1
      versions.set(written, version)
      if (random(2) === 0) await pause(random(3))
      await answer(response, [`${version}`])
      return
    }
    reads.count += 1
    const text = `${path}=${now(path)};`
    const size = random(20) === 0 ? 300_000 : 1 + random(3000)
    const piece = text.repeat(Math.ceil(size / text.length / 4))
    await answer(response, [piece, piece, piece, piece])
  })
  return { device, now, reads }
}

it(`H184 H186 no read of ${OPERATIONS} random requests gets a state older than a write, a part, or the body of another`, async () => {
  const seed = Number(process.env.POSTERN_SHARING_SEED ?? Date.now() % 1_000_000)
  const random = randomOf(seed)
  const clock = stillClock()
  const { device, now, reads } = await startVersions(random, clock)
  const share = { paths: ['/a', '/b', '/below/'], for: '5ms' }
  const config = {
    upstream: { share, max_in_flight: 8, queue: { size: 1000, timeout: '1m' } },
    oauth: { revocation_path: '/revoke' },
  }
  const sidecar = await startSidecar({
    transport: 'h2',
    clock,
    device,
    config,
    bounds: { listen: { maxResets: 1_000_000 } },
  })
  /** The version that an answered write of any client gave, by path. */
  const floor = new Map<string, number>()
  const counts = { read: 0, written: 0, broken: 0, failed: 0, left: 0, revoked: 0 }
  let left = OPERATIONS

  function check(path: string, least: number, { status, text }: { status: number; text: string }): void {
    if (status !== 200) {
      expect([500, 401], text).toContain(status)
      counts.failed += 1
      return
    }
    counts.read += 1
    const first = text.slice(0, text.indexOf(';') + 1)
    const version = Number(first.slice(path.length + 1, -1))
    const whole = first.repeat(text.length / Math.max(1, first.length))
    // Not `toEqual`: a long difference would take minutes to print.
    const is = [first.startsWith(`${path}=`), version >= least, version <= now(path), whole === text]
    expect(is, `seed ${seed}: ${first}, at least ${least}`).toEqual([true, true, true, true])
  }

  async function write(start: (fields: object) => Exchange): Promise<void> {
    const path = PATHS[random(PATHS.length)] ?? ''
    const method = WRITES[random(WRITES.length)] ?? ''
    const { status, text } = await start({ method, path: `/write?for=${path}` }).response
    if (status === 200) {
      counts.written += 1
      floor.set(path, Math.max(floor.get(path) ?? 0, Number(text)))
    }
  }

  async function act(transport: Transport): Promise<void> {
    let connection: Connection = await connect({ transport, url: sidecar.url })
    let grant = await sidecar.grant()
    const start = (request: object): Exchange =>
      connection.start({
        ...request,
        fields: ['Authorization', `Bearer ${grant.access_token}`],
      })
    while (left > 0) {
      left -= 1
      const choice = random(100)
      try {
        if (choice < 15) {
          await write(start)
          continue
        }
        const path = PATHS[random(PATHS.length)] ?? ''
        const least = floor.get(path) ?? 0
        const exchange = start({ method: 'GET', path })
        exchange.response.catch(() => {})
        if (choice < 20) {
          await clock.pause(random(4))
          exchange.abort()
          counts.left += 1
          if (transport !== 'h2') connection = await connect({ transport, url: sidecar.url })
          continue
        }
        if (choice < 30) exchange.pause()
        if (choice < 30) await clock.pause(random(10))
        if (choice < 30) exchange.resume()
        if (choice === 30) {
          await sidecar.postToken({ token: grant.refresh_token }, { path: '/revoke' })
          grant = await sidecar.grant()
          counts.revoked += 1
        }
        check(path, least, await exchange.response)
      } catch (error) {
        if (!(error instanceof BrokenTransfer)) throw error
        counts.broken += 1
        if (transport !== 'h2') connection = await connect({ transport, url: sidecar.url })
      }
    }
    connection.close()
  }

  let busy = CLIENTS
  const acts = Array.from({ length: CLIENTS }, (_, i) => act(i % 2 === 0 ? 'h2' : 'tls'))
  const all = Promise.all(acts.map((each) => each.finally(() => (busy -= 1))))
  all.catch(() => {})
  while (busy > 0) await clock.advance(1)
  await all
  await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(0)
  expect(await sidecar.metric('postern_upstream_queued')).toBe(0)
  const shared = await sidecar.metric('postern_upstream_shared_total')
  if (OPERATIONS > 1000) console.info({ seed, ...counts, shared, reads, memory: process.memoryUsage() })
  expect(shared).toBeGreaterThan(OPERATIONS / 20)
  expect(counts.read).toBeGreaterThan(OPERATIONS / 2)
}, 1_200_000)
