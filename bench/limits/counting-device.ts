import { once } from 'node:events'
import { createServer } from 'node:http'
import { atEnd } from '../run-program.ts'

/** The path of all requests to the device, and the body of its responses. */
export const DEVICE_PATH = '/api/status'
export const DEVICE_BODY = '{"status":"ok","uptime":42}'

/** A device that counts its requests. It sends rate-limit fields with wrong values, which must never reach a client. */
export interface CountingDevice {
  readonly url: string
  /** Requests for `DEVICE_PATH` without a bearer token. */
  readonly expected: number
  /** Every other request, as `METHOD target`. */
  readonly unexpected: readonly string[]
}

export async function startCountingDevice(): Promise<CountingDevice> {
  let expected = 0
  const unexpected: string[] = []
  const server = createServer((req, res) => {
    if (req.method === 'GET' && req.url === DEVICE_PATH && req.headers.authorization === undefined)
      expected += 1
    else unexpected.push(`${req.method} ${req.url}`)
    res.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Length': DEVICE_BODY.length,
      'X-RateLimit-Limit': '1000000',
      'X-RateLimit-Remaining': '999999',
      'X-RateLimit-Reset': '1',
    })
    res.end(DEVICE_BODY)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the device has no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    get expected() {
      return expected
    },
    unexpected,
  }
}
