import { getEventListeners, once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { type Flood, type FloodReport, type FloodResponse, flood } from '../../src/verify/flood.ts'
import { makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'

const certificate = await makeCertificate()

async function listen(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

const serve = async (listener: RequestListener): Promise<string> =>
  `http://127.0.0.1:${await listen(createServer({ keepAliveTimeout: 60_000 }, listener))}`

const GET = { method: 'GET', path: '/' } as const

interface Received extends FloodResponse {
  readonly request: number
}

/** Floods with one kind of request on 20 connections, unless `plan` says otherwise. */
async function send(plan: Partial<Flood> & Pick<Flood, 'url' | 'until'>) {
  const responses: Received[] = []
  const report = await flood({
    requests: [GET],
    connections: 20,
    pipelining: 1,
    onResponse: (request, response) => responses.push({ request, ...response }),
    ...plan,
  })
  expect(report.sent).toBe(report.responses + report.inFlight + report.discarded + report.lost)
  return { report, responses }
}

const GOOD: Partial<FloodReport> = {
  lost: 0,
  discarded: 0,
  failedConnections: 0,
  timeouts: 0,
  gaveUp: false,
  faults: [],
}

describe.each(['http', 'https'] as const)('over %s', (scheme) => {
  async function target(listener: RequestListener) {
    const server =
      scheme === 'http'
        ? createServer(listener)
        : createTlsServer({ ...certificate, key: certificate.key }, listener)
    const host = `localhost:${await listen(server)}`
    return { host, url: `${scheme}://${host}`, tls: { ca: certificate.cert } }
  }

  it('accounts for 200 requests on each of 20 connections', async () => {
    const seen = { requests: 0, hosts: new Set<string | undefined>() }
    const { host, ...way } = await target((request, response) => {
      seen.requests += 1
      seen.hosts.add(request.headers.host)
      response.end(`${request.method} ${request.url}`)
    })
    const { report, responses } = await send({
      ...way,
      requests: [
        { ...GET, path: '/a' },
        { method: 'POST', path: '/b', body: 'x' },
      ],
      until: { requestsEach: 200 },
    })
    expect(report).toMatchObject({ ...GOOD, sent: 4000, responses: 4000, inFlight: 0 })
    expect(seen).toEqual({ requests: 4000, hosts: new Set([host]) })
    expect(new Set(responses.map(({ request, body }) => `${request} ${body}`))).toEqual(
      new Set(['0 GET /a', '1 POST /b']),
    )
  })

  it('counts the requests that a flood of some time leaves in flight', async () => {
    let served = 0
    const { host, ...way } = await target((_, response) => {
      served += 1
      if (served <= 500) response.end('x')
    })
    const { report, responses } = await send({ ...way, pipelining: 2, until: { seconds: 0.5 } })
    expect(report).toMatchObject({ ...GOOD, sent: responses.length + 40, inFlight: 40 })
    expect(report.responses).toBe(responses.length)
    expect(report.longestWait).toBeGreaterThan(0)
    expect(report.longestWait).toBeLessThan(report.took * 1000 + SLOW)
  })
})

/** Milliseconds. Longer than a request waits on a machine under load. */
const SLOW = 500

it('gives each response its own time', async () => {
  const url = await serve((request, response) => {
    if (request.url === '/slow') setTimeout(() => response.end(), SLOW)
    else response.writeHead(429).end()
  })
  const { responses } = await send({
    url,
    connections: 2,
    requests: [GET, { ...GET, path: '/slow' }],
    until: { requestsEach: 10 },
  })
  const times = (status: number) => responses.filter((each) => each.status === status).map(({ time }) => time)
  expect([times(429).length, times(200).length]).toEqual([10, 10])
  expect(Math.min(...times(200))).toBeGreaterThan(SLOW - 2)
  expect(times(429).toSorted((a, b) => a - b)[4]).toBeLessThan(SLOW - 2)
  expect(times(429).every((time) => Number.isInteger(time))).toBe(false)
})

it('does not call a request lost that autocannon sends behind Connection: close, and keeps times and requests right', async () => {
  const url = await serve((request, response) => {
    setTimeout(() => response.setHeader('Connection', 'close').end(request.url), SLOW)
  })
  const enough = new AbortController()
  const responses: Received[] = []
  const { report } = await send({
    url,
    connections: 4,
    requests: [
      { ...GET, path: '/0' },
      { ...GET, path: '/1' },
      { ...GET, path: '/2' },
    ],
    until: { seconds: 60 },
    signal: enough.signal,
    onResponse(request, response) {
      if (responses.push({ request, ...response }) === 12) enough.abort()
    },
  })
  expect(report).toMatchObject({ lost: 0, failedConnections: 0, timeouts: 0, faults: [] })
  expect(report.responses).toBeGreaterThan(10)
  expect(report.discarded).toBeGreaterThan(report.responses - 5)
  for (const { request, body } of responses) expect(body).toBe(`/${request}`)
  expect(responses.toSorted((a, b) => a.time - b.time)[Math.floor(responses.length / 2)]?.time).toBeLessThan(
    2 * SLOW,
  )
})

it('counts requests whose connection is reset, and those whose connection ends without a response', async () => {
  let requests = 0
  const url = await serve((request, response) => {
    requests += 1
    if (requests === 40) request.socket.resetAndDestroy()
    else if (requests === 80) request.socket.end()
    else response.end()
  })
  const { report } = await send({ url, connections: 4, until: { requestsEach: 50 } })
  expect(report).toMatchObject({ sent: 200, responses: 198, lost: 2, failedConnections: 1, gaveUp: false })
  expect(report.faults).toEqual(['1 connections failed (read ECONNRESET)', '2 requests got no response'])
})

it('counts a request as lost that times out', async () => {
  let requests = 0
  const url = await serve((_, response) => {
    requests += 1
    if (requests > 2) response.end()
  })
  const { report } = await send({ url, connections: 4, until: { requestsEach: 10 }, timeout: 2 })
  expect(report).toMatchObject({ sent: 40, responses: 38, lost: 2, timeouts: 2, failedConnections: 0 })
  expect(report.faults).toEqual(['2 requests timed out', '2 requests got no response'])
})

it('says that the server sends interim responses, which autocannon counts as final ones', async () => {
  const url = await serve((_, response) => {
    response.writeEarlyHints({ link: '</style.css>' })
    response.end()
  })
  const { report, responses } = await send({ url, connections: 1, until: { requestsEach: 10 } })
  expect(responses.every(({ status }) => status === 200)).toBe(true)
  expect(report.faults).toContainEqual(expect.stringMatching(/^\d+ responses were 1xx, /))
})

it('gives up soon at a server that refuses connections', async () => {
  const url = `http://127.0.0.1:${await unusedPort()}`
  const { report } = await send({ url, until: { seconds: 60 } })
  expect(report).toMatchObject({ responses: 0, gaveUp: true })
  expect(report.took).toBeLessThan(30)
  expect(report.faults[0]).toMatch(/^\d+ connections failed \(connect ECONNREFUSED .*\)$/)
})

it('gives up soon at a server that accepts connections and closes them', async () => {
  const closing = createTcpServer((socket: Socket) => {
    socket.on('error', () => undefined)
    socket.end()
  })
  const { report } = await send({ url: `http://127.0.0.1:${await listen(closing)}`, until: { seconds: 60 } })
  expect(report).toMatchObject({ responses: 0, gaveUp: true })
})

it('sends no request to a server that it does not trust, and says why', async () => {
  let bytes = 0
  const server = createTlsServer(certificate, (_, response) => response.end())
  server.on('secureConnection', (socket) => socket.on('data', (data: Buffer) => (bytes += data.length)))
  const { report } = await send({
    url: `https://localhost:${await listen(server)}`,
    until: { requestsEach: 5 },
  })
  expect(report).toMatchObject({ sent: 100, responses: 0, lost: 100 })
  expect(report.faults[0]).toMatch(/^100 connections failed \(self-signed certificate/)
  expect(bytes).toBe(0)
})

it.each([{ seconds: 60 }, { requestsEach: 1_000_000 }])(
  'ends with %o when it is told to, and leaves nothing behind',
  async (until) => {
    const url = await serve((_, response) => response.end())
    const [early, later] = [AbortSignal.abort(), new AbortController()]
    const { report } = await send({ url, until, signal: early })
    expect(report).toMatchObject({ ...GOOD, inFlight: 20 })

    const flooding = send({ url, until, signal: later.signal, onResponse: () => later.abort() })
    const { report: stopped } = await flooding
    expect(stopped).toMatchObject({ ...GOOD, inFlight: 20 })
    expect(getEventListeners(later.signal, 'abort')).toEqual([])
  },
)

it('rejects with the error of a listener', async () => {
  const url = await serve((_, response) => response.end())
  const onResponse = () => {
    throw new Error('no such window')
  }
  await expect(send({ url, until: { seconds: 60 }, onResponse })).rejects.toThrow('no such window')
})

it('rejects a request that cannot be built', async () => {
  const requests = [{ ...GET, body: 1 as unknown as string, method: 'NONE' as 'GET' }]
  await expect(send({ url: 'http://127.0.0.1:1', requests, until: { seconds: 1 } })).rejects.toThrow('NONE')
})
