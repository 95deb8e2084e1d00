import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { freePort, outputOf } from '../../bench/child.ts'
import { closeLater } from '../support/cleanup.ts'

it('a free port is none that the system gives to somebody else meanwhile', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.close()
  })
  const address = server.address()
  const given = typeof address === 'object' ? (address?.port ?? 0) : 0
  const ports = await Promise.all(Array.from({ length: 20 }, () => freePort()))
  expect(given).toBeGreaterThan(Math.max(...ports))
})

it('a program that fails is named with what it complained of, and without its arguments', async () => {
  const failing = outputOf('sh', ['-c', 'echo wrong >&2; exit 3', 'a-token'])
  await expect(failing).rejects.toThrow('sh ended (3): wrong')
  await expect(failing).rejects.not.toThrow('a-token')
})

it('a program that is not there is named', async () => {
  await expect(outputOf('no-such-program', [])).rejects.toThrow('no-such-program ended (ENOENT)')
})
