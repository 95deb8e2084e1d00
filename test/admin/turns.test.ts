import { expect, it } from 'vitest'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'

const HEALTHZ = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
const countOf = (text: string): number => text.split('HTTP/1.1 200').length - 1

it('C26 the admin listener closes a connection that pipelines more than a few requests, and serves the others', async () => {
  const sidecar = await startSidecar()
  const calm = await rawConnection(sidecar.adminUrl)
  const attackers = await Promise.all(Array.from({ length: 20 }, () => rawConnection(sidecar.adminUrl)))
  for (const attacker of attackers) attacker.write(HEALTHZ.repeat(1500))
  for (const attacker of attackers) expect(countOf(await attacker.closed)).toBeLessThanOrEqual(8)
  calm.write(HEALTHZ)
  await calm.waitFor('"ok"')
  expect((await fetch(`${sidecar.adminUrl}/healthz`)).status).toBe(200)
})

it('C26 a connection to the admin listener may send many requests one after the other, and a few at once', async () => {
  const sidecar = await startSidecar()
  const connection = await rawConnection(sidecar.adminUrl)
  for (let i = 0; i < 50; i += 1) {
    connection.forget()
    connection.write(HEALTHZ.repeat(3))
    await connection.waitFor(/(?:"ok"[\s\S]*){3}/)
  }
})

it('C26 requests of many connections of a peer are all answered, each in a turn of the event loop that has room', async () => {
  const sidecar = await startSidecar()
  const connections = await Promise.all(Array.from({ length: 100 }, () => rawConnection(sidecar.adminUrl)))
  for (const connection of connections) connection.write(HEALTHZ.repeat(4))
  for (const connection of connections) await connection.waitFor(/(?:"ok"[\s\S]*){4}/)
})
