import { expect, it } from 'vitest'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { hasRead, nextAccepted } from '../support/waiting.ts'

it('a reload has other deadlines in effect for new connections, and those that are open keep theirs', async () => {
  const sidecar = await startSidecar()
  const { clock } = sidecar
  const begin = async () => {
    const accepted = nextAccepted(sidecar.url)
    const connection = await rawConnection(sidecar.url)
    connection.write('GET / HTTP/1.1\r\n')
    await hasRead(await accepted, 16)
    return connection
  }
  const before = await begin()
  await sidecar.reload({ listen: { header_timeout: '2s' } })
  const after = await begin()
  await clock.advance(2_000)
  expect(await after.closed).toMatch(/^HTTP\/1\.1 400/)
  expect(before.received).toBe('')
  await clock.advance(8_000)
  expect(await before.closed).toMatch(/^HTTP\/1\.1 400/)
})

it('a reload has another cap on the connections of a client in effect', async () => {
  const sidecar = await startSidecar()
  const token = await sidecar.token()
  const kept = await sidecar.connect()
  const fields = ['Authorization', `Bearer ${token}`]
  expect((await kept.send({ fields })).status).toBe(200)
  await sidecar.reload({ listen: { max_connections_per_client: 1 } })
  await expect(sidecar.request({ token })).rejects.toThrow()
  expect((await kept.send({ fields })).status).toBe(200)
  await sidecar.reload({})
  expect((await sidecar.request({ token })).status).toBe(200)
})
