import { describe, expect, it } from 'vitest'
import type { Status } from '../../src/commands/status.ts'
import { stillClock } from '../support/clock.ts'
import { startCannedDevice } from '../support/raw-device.ts'
import { ask, explained } from '../support/records.ts'
import { startSidecar } from '../support/sidecar.ts'

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie : sid=4711s3cret\r\n\r\nhi'
const BODY = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\nhi\r\n0\r\n\r\n'

describe.each([
  ['a head', HEAD, 'a blank before a colon', 'Set-Cookie : xxx=xxxxxxxxxx\\r\\n'],
  ['a body', BODY, 'a malformed line of a chunk', '2 \\r\\n'],
])('H272 malformed HTTP in %s', (_, response, fault, bytes) => {
  it('is told with its request, its fault and the bytes around it: in the log, by explain, and by status with the time', async () => {
    const device = await startCannedDevice(response)
    const clock = stillClock()
    const sidecar = await startSidecar({ device, clock })
    const token = await sidecar.token()
    for (const path of ['/api/a?key=4711s3cret', '/api/b']) {
      expect((await sidecar.request({ token, path })).text).toBe('hi')
    }
    const [warning, ...others] = sidecar
      .logLines()
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg.startsWith('the device sends malformed HTTP'))
    expect(others).toEqual([])
    expect(warning).toMatchObject({ request: 'GET /api/a', fault, bytes })
    const told = `because of ${fault}: "${bytes}"`
    expect((await explained(sidecar, '/api/a')).Device).toContain(told)
    expect((await explained(sidecar, '/api/b')).Device).not.toContain('because of')
    const { quirks } = (await ask(sidecar, '/status')) as Status
    expect(quirks).toMatchObject([
      {
        route: null,
        kind: 'tolerant',
        since: clock.wall(),
        malformed: { request: 'GET /api/a', fault, bytes },
      },
    ])
    expect(JSON.stringify([sidecar.logLines(), quirks])).not.toContain('4711s3cret')
  })
})
