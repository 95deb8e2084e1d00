import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { type Flood, flood } from './autocannon.ts'
import { makeCertificate } from './certificate.ts'
import { closeLater } from './cleanup.ts'

const GET = { method: 'GET', path: '/' } as const
const certificate = await makeCertificate()

async function serve(listener: RequestListener, scheme: 'http' | 'https' = 'http'): Promise<string> {
  const options = { keepAliveTimeout: 60_000 }
  const server =
    scheme === 'http'
      ? createServer(options, listener)
      : createTlsServer({ ...options, ...certificate, key: certificate.key }, listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.close()
    server.closeAllConnections()
  })
  return `${scheme}://localhost:${(server.address() as AddressInfo).port}`
}

/** Floods with one kind of request on 20 connections, unless `plan` says otherwise. */
async function send(plan: Partial<Flood> & Pick<Flood, 'url' | 'until'>) {
  const seen: string[] = []
  const report = await flood({
    requests: [GET],
    connections: 20,
    pipelining: 1,
    onResponse: (request, { status, body }) => seen.push(`${request} ${status} ${body}`),
    ...plan,
  })
  return { report, seen }
}

it.each(['http', 'https'] as const)(
  'accounts for 200 requests on each of 20 connections, over %s',
  async (scheme) => {
    const hosts = new Set<string | undefined>()
    const url = await serve((request, response) => {
      hosts.add(request.headers.host)
      response.end(`${request.method} ${request.url}`)
    }, scheme)
    const requests = [
      { ...GET, path: '/a' },
      { method: 'POST', path: '/b', body: 'x' },
    ] as const
    const { report, seen } = await send({ url, requests, until: { requestsEach: 200 } })
    expect(report).toEqual({ responses: 4000, faults: [] })
    expect(hosts).toEqual(new Set([new URL(url).host]))
    expect(new Set(seen)).toEqual(new Set(['0 200 GET /a', '1 200 POST /b']))
  },
)

it('says how many connections failed, and how many requests got no response', async () => {
  let requests = 0
  const url = await serve((request, response) => {
    requests += 1
    if (requests % 5 === 0) request.socket.resetAndDestroy()
    else response.end()
  })
  const { report } = await send({ url, connections: 4, until: { requestsEach: 50 } })
  expect(report.faults).toEqual([
    expect.stringMatching(/^\d+ connections failed$/),
    expect.stringMatching(/^\d+ requests got no response$/),
  ])
})

it('rejects with the error of a listener', async () => {
  const url = await serve((_, response) => response.end())
  const onResponse = () => {
    throw new Error('no such window')
  }
  await expect(send({ url, until: { seconds: 60 }, onResponse })).rejects.toThrow('no such window')
})
