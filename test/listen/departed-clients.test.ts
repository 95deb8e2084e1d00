import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { startSidecar } from '../support/sidecar.ts'

/** Connects, sends and resets, in another process: the sidecar in this process accepts only afterwards. */
function sendAndReset(url: string, bytes: string): void {
  const { hostname: host, port } = new URL(url)
  const script = `
    const socket = require('node:net').connect({ host: '${host}', port: ${port} }, () =>
      socket.write(${JSON.stringify(bytes)}, () => socket.resetAndDestroy()))`
  expect(spawnSync(process.execPath, ['-e', script]).status).toBe(0)
}

it('C17 a client that resets its connection before accept is not taken for a peer of a Unix socket, which has no address either', async () => {
  const config = { listen: { trusted_proxies: ['unix'] } }
  const sidecar = await startSidecar({ config })
  const token = await sidecar.token()
  const head = ['GET /left HTTP/1.1', 'Host: device', `Authorization: Bearer ${token}`]
  sendAndReset(sidecar.url, [...head, 'X-Forwarded-For: 192.0.2.66', '', ''].join('\r\n'))
  await sidecar.request({ token, path: '/after' })
  await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
  const clients = sidecar.logLines().map((line) => JSON.parse(line).client)
  expect(new Set(clients)).toEqual(new Set([undefined, '127.0.0.1']))
  expect(sidecar.device.requests.map(({ target }) => target)).toEqual(['/after'])
})
