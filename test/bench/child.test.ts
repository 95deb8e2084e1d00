import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { freePort, outputOf } from '../../bench/child.ts'
import { closeLater } from '../support/cleanup.ts'

it('a free port is below the ephemeral ports that the kernel hands out', async () => {
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

it('the error of a failed program has its name and its standard error, and not its arguments', async () => {
  const failing = outputOf('sh', ['-c', 'echo wrong >&2; exit 3', 'a-token'])
  await expect(failing).rejects.toThrow('sh ended (3): wrong')
  await expect(failing).rejects.not.toThrow('a-token')
})

it('the error of a missing program has its name', async () => {
  await expect(outputOf('no-such-program', [])).rejects.toThrow('no-such-program ended (ENOENT)')
})
