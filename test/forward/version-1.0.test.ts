import { expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import { nextRequest, startRawDevice } from '../support/raw-device.ts'
import { startSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'
import { acceptWebSockets, refusedWebSocket } from '../support/websocket.ts'

const OLD = { version: '1.0' }

/** A device that knows HTTP/1.0 alone: it refuses any other version, chunks and a second request, and ends a body by closing. */
function startOldDevice(heads: string[]) {
  return startRawDevice(async (peer) => {
    const head = await nextRequest(peer)
    heads.push(head)
    const refused = !head.includes(' HTTP/1.0\r\n') || /^(?:transfer-encoding|te|expect):/im.test(head)
    peer.end(refused ? 'HTTP/1.0 505 No\r\n\r\n' : 'HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold')
  })
}

describeProtocols('upstream.version: "1.0"', (transport) => {
  const start = (url: string, upstream: YamlPart = OLD, config: YamlPart = {}) =>
    startSidecar({ transport, device: { url }, config: { ...config, upstream } })

  it('H174 a device that knows HTTP/1.0 alone gets one request per connection, with its length', async () => {
    const heads: string[] = []
    const device = await startOldDevice(heads)
    const newer = await start(device.url, {})
    expect((await newer.request({ token: await newer.token() })).status).toBe(505)
    const sidecar = await start(device.url)
    const token = await sidecar.token()
    const fields = transport === 'h2' ? [] : ['TE', 'trailers', 'Connection', 'TE', 'Expect', '100-continue']
    for (const request of [{}, {}, { method: 'POST' }, { body: 'four', fields }]) {
      const response = await sidecar.request({ token, ...request })
      expect([response.status, response.text]).toEqual([200, 'old'])
    }
    expect(heads.slice(1).map((head) => head.split('\r\n')[0])).toEqual([
      'GET / HTTP/1.0',
      'GET / HTTP/1.0',
      'POST / HTTP/1.0',
      'POST / HTTP/1.0',
    ])
    for (const head of heads.slice(1)) expect(head).toMatch(/^Connection: close\r$/m)
    expect(heads.slice(3).map((head) => /^Content-Length: (\d+)\r$/m.exec(head)?.[1])).toEqual(['0', '4'])
    expect(device.peers).toHaveLength(5)
  })

  it('H174 a body of unknown length is collected, or refused with 411', async () => {
    const device = await startDevice()
    const body = ['some ', 'pieces']
    const config = { status_codes: 'http' }
    const collecting = await start(device.url, { ...OLD, buffer_uploads: '10B' }, config)
    const token = await collecting.token()
    expect((await collecting.request({ token, body: ['ten ', 'bytes!'] })).status).toBe(200)
    const [seen] = device.requests
    expect([seen?.version, seen?.header('Content-Length'), seen?.header('Transfer-Encoding')]).toEqual([
      '1.0',
      '10',
      undefined,
    ])
    expect((await collecting.request({ token, body })).status).toBe(413)
    const streaming = await start(device.url, { ...OLD, buffer_uploads: 'off' }, config)
    const refused = await streaming.request({ token: await streaming.token(), body })
    const fields = transport === 'h2' ? [] : ['Expect', '100-continue']
    const expecting = { token: await streaming.token(), body, fields }
    expect((await streaming.request(expecting)).informational).toEqual([])
    expectError(refused, 411, 'invalid_request')
    expect(refused.json().error_description).toMatch(/Content-Length/)
    expect(device.requests).toHaveLength(1)
  })
})

it('H174 an upgrade is refused, and says why', async () => {
  const device = await startDevice()
  const { upgrades } = acceptWebSockets(device)
  const sidecar = await startSidecar({ transport: 'tls', device, config: { upstream: OLD } })
  const response = await refusedWebSocket(sidecar.url, { token: await sidecar.token() })
  expect([response.status, response.text]).toEqual([400, expect.stringContaining('HTTP/1.0')])
  expect([upgrades.length, device.requests.length]).toEqual([0, 0])
})
