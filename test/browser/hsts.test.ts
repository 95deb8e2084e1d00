import { expect, it } from 'vitest'
import { withoutHsts } from '../../src/config/response-header-field.ts'
import { makeCertificate } from '../support/certificate.ts'
import { readBody, startDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

const NAME = 'Strict-Transport-Security'
const SET = { upstream: { response_headers: { [NAME]: 'max-age=31536000' } } }

describeTransports(
  'H318 Strict-Transport-Security in upstream.response_headers',
  (transport) => {
    it('H318 is on every response of the device over TLS, once, in place of its own', async () => {
      const device = await startDevice(async (request, response) => {
        await readBody(request)
        response.setHeader(NAME, 'max-age=1; includeSubDomains')
        response.writeHead(request.url === '/missing' ? 404 : 200).end('ok')
      })
      const sidecar = await startSidecar({ transport, device, config: SET })
      const token = await sidecar.token()
      for (const response of [
        await sidecar.request({ token }),
        await sidecar.request({ token }),
        await sidecar.request({ token, method: 'HEAD' }),
        await sidecar.request({ token, method: 'POST', body: 'x' }),
        await sidecar.request({ token, path: '/missing' }),
      ])
        expect(response.values(NAME), `${response.status}`).toEqual(['max-age=31536000'])
      expect((await sidecar.request()).values(NAME)).toEqual([])
    })

    it('H318 without it the device has its own', async () => {
      const device = await startDevice((_, response) => void response.setHeader(NAME, 'max-age=7').end('ok'))
      const sidecar = await startSidecar({ transport, device })
      expect((await sidecar.request()).values(NAME)).toEqual([])
      expect((await sidecar.request({ token: await sidecar.token() })).values(NAME)).toEqual(['max-age=7'])
    })
  },
  ['tls', 'h2'],
)

it('H318 is on the answer to a WebSocket', async () => {
  const device = await startDevice()
  acceptWebSockets(device)
  const sidecar = await startSidecar({ transport: 'tls', device, config: SET })
  const { socket, response } = await openWebSocket(sidecar.url, { token: await sidecar.token() })
  socket.close()
  expect(response.headers[NAME.toLowerCase()]).toBe('max-age=31536000')
})

it('H318 is on no response over cleartext, which RFC 6797 §7.2 forbids, also not when a reload names a certificate', async () => {
  const sidecar = await startSidecar()
  const token = await sidecar.token()
  const { certFile: cert, keyFile: key } = await makeCertificate()
  const tls = { cert, key }
  await sidecar.reload({
    listen: { tls },
    upstream: { response_headers: { [NAME]: 'max-age=9', 'X-Set': 'a' } },
  })
  const response = await sidecar.request({ token })
  expect([response.values('X-Set'), response.values(NAME)]).toEqual([['a'], []])
})

it('H318 in no spelling over cleartext', () => {
  expect(withoutHsts({ strict_transport_security: 'a', 'X-Set': 'a' })).toEqual({ 'X-Set': 'a' })
})
