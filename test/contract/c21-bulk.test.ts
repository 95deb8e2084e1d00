import { once } from 'node:events'
import http2 from 'node:http2'
import https from 'node:https'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, expect, it, onTestFailed } from 'vitest'
import { prepareSite, type Served } from '../process/serve.ts'
import { closeLater } from '../support/cleanup.ts'
import { startDevice } from '../support/device.ts'
import { figuresOf } from '../support/processes.ts'

const MiB = 1 << 20
const SIZE = 1024 * MiB
/** How many bytes the process may grow by: V8 keeps some 64 MiB of buffers before it collects them. */
const GROWTH = 160 * MiB

const piece = Buffer.alloc(256 * 1024, 'x')

function* pieces(): Generator<Buffer> {
  for (let sent = 0; sent < SIZE; sent += piece.length) yield piece
}

async function count(stream: Readable): Promise<number> {
  let bytes = 0
  for await (const chunk of stream) bytes += chunk.length
  return bytes
}

interface Transfer {
  readonly up: Writable
  readonly down: Promise<Readable>
}

function open(transport: 'tls' | 'h2', { url }: Served, token: string, method: string): Transfer {
  const authorization = `Bearer ${token}`
  if (transport === 'tls') {
    const request = https.request(url, {
      method,
      headers: { authorization },
      rejectUnauthorized: false,
      agent: false,
    })
    return { up: request, down: once(request, 'response').then(([response]) => response) }
  }
  const session = http2.connect(url, { rejectUnauthorized: false })
  closeLater(() => session.destroy())
  const stream = session.request({ ':method': method, ':path': '/', authorization }, { endStream: false })
  return { up: stream, down: once(stream, 'response').then(() => stream) }
}

describe.each(['strict', 'tolerant'])('C21 1 GiB with the %s parser', { timeout: 600_000 }, (parser) => {
  it('C21 passes at constant memory as upload, download and echo, over HTTP/1 and HTTP/2', async () => {
    const device = await startDevice(async (request, response) => {
      if (request.method === 'GET') await pipeline(pieces, response)
      else if (request.method === 'PUT') await pipeline(request, response)
      else response.end(String(await count(request)))
    })
    const site = await prepareSite({
      device,
      transport: 'tls',
      config: { upstream: { parser, buffer_uploads: 'off' } },
    })
    const sidecar = await site.serve()
    onTestFailed(() => console.info(sidecar.lines))
    const token = (await sidecar.grant()).access_token
    for (const transport of ['tls', 'h2'] as const) {
      for (const method of ['GET', 'POST', 'PUT']) {
        const before = figuresOf(sidecar.pid).resident
        let most = before
        const timer = setInterval(() => {
          most = Math.max(most, figuresOf(sidecar.pid).resident)
        }, 50)
        closeLater(() => clearInterval(timer))
        const start = performance.now()
        const { up, down } = open(transport, sidecar, token, method)
        if (method === 'GET') {
          up.end()
          expect(await count(await down)).toBe(SIZE)
        } else if (method === 'PUT') {
          const echoed = down.then(count)
          await pipeline(pieces, up)
          expect(await echoed).toBe(SIZE)
        } else {
          await pipeline(pieces, up)
          const [counted] = await once(await down, 'data')
          expect(Number(counted)).toBe(SIZE)
        }
        clearInterval(timer)
        const rate = Math.round(SIZE / MiB / ((performance.now() - start) / 1000))
        const grown = `${before >> 20} + ${(most - before) >> 20} MiB`
        console.info(`${method} of 1 GiB, ${parser}, ${transport}: ${rate} MiB/s, memory ${grown}`)
        expect(most - before, grown).toBeLessThan(GROWTH)
      }
    }
  })
})
