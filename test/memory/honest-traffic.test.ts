import { expect, it } from 'vitest'
import type { Connection } from '../support/message.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** What `listen.memory: auto` comes to under `MemoryMax=512M`. */
const AS_WITH_512_MIB = '182MiB'

/** Node ends a handshake itself after twice this time, and a hundred at once, both ends in this process, may take long on a busy machine. */
const DEADLINES = { listen: { tlsTimeout: 3_600_000 } }

function sidecarOf512(): Promise<TestSidecar> {
  return startSidecar({
    transport: 'h2',
    config: { listen: { memory: AS_WITH_512_MIB } },
    bounds: DEADLINES,
  })
}

/** Nothing was refused or lost because of memory or a cap. */
async function expectNothingLost(sidecar: TestSidecar): Promise<void> {
  const metric = await sidecar.figures()
  expect(metric('postern_shed_total')).toBe(0)
  expect(metric('postern_connections_refused_total')).toBe(0)
}

/** The kernel holds 511 connections that this process has not accepted yet, and may reset those beyond. */
const AT_ONCE = 100

async function openAll(
  sidecar: TestSidecar,
  count: number,
  from: (at: number) => string,
): Promise<Connection[]> {
  const all: Connection[] = []
  while (all.length < count) {
    const next = Array.from({ length: Math.min(AT_ONCE, count - all.length) }, (_, i) => from(all.length + i))
    all.push(...(await Promise.all(next.map((address) => sidecar.connect({ from: address })))))
  }
  return all
}

it('H269 a page of 100 requests at once over HTTP/2 is served', async () => {
  const sidecar = await sidecarOf512()
  const fields = ['authorization', `Bearer ${await sidecar.token()}`]
  const connection = await sidecar.connect()
  const responses = await Promise.all(
    Array.from({ length: 100 }, (_, at) => connection.send({ path: `/part/${at}`, fields })),
  )
  expect(responses.map(({ status }) => status)).toEqual(Array(100).fill(200))
  await expectNothingLost(sidecar)
})

it('H269 250 connections of one address, with a request on each, are served', async () => {
  const sidecar = await sidecarOf512()
  const fields = ['authorization', `Bearer ${await sidecar.token()}`]
  const connections = await openAll(sidecar, 250, () => '127.0.0.2')
  for (const each of connections) expect((await each.send({ path: '/', fields })).status).toBe(200)
  await expectNothingLost(sidecar)
})

it('H269 1,000 quiet connections stay open, and another client takes the place of none', async () => {
  const sidecar = await sidecarOf512()
  const connections = await openAll(sidecar, 999, (at) => `127.0.0.${2 + (at % 200)}`)
  let closed = 0
  for (const each of connections) void each.closed.then(() => (closed += 1))
  await sidecar.grant()
  expect(await sidecar.metric('postern_connections')).toBe(999)
  expect(closed).toBe(0)
  await expectNothingLost(sidecar)
})
