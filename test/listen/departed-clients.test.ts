import { expect, it } from 'vitest'
import { sendAndReset } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'

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
