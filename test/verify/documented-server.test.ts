import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { connect } from '../support/client.ts'
import { limitsOf } from '../support/limit-fields.ts'
import type { Connection, Request, Response } from '../support/message.ts'
import { rawConnection } from '../support/raw.ts'
import { describeTransports, type Transport } from '../support/transports.ts'
import {
  type DocumentedServer,
  type DocumentedServerOptions,
  startDocumentedServer,
} from './documented-server.ts'
import { FAULTS, faultNamed } from './faults.ts'

interface Client extends DocumentedServer {
  readonly connection: Connection
  post(form: Readonly<Record<string, string>>, path?: string): Promise<Response>
  get(token?: string, request?: Request): Promise<Response>
  login(): Promise<Readonly<Record<string, string>>>
}

/** A server, and one connection to it. */
async function start(options: DocumentedServerOptions = {}, transport: Transport = 'http1'): Promise<Client> {
  const server = await startDocumentedServer({ tls: transport !== 'http1', ...options })
  const connection = await connect({ transport, url: server.url })
  const post: Client['post'] = (form, path = '/oauth/token') =>
    connection.send({
      path,
      fields: ['Content-Type', 'application/x-www-form-urlencoded'],
      body: new URLSearchParams(form).toString(),
    })
  return {
    ...server,
    connection,
    post,
    get: (token, request = {}) =>
      connection.send({
        ...request,
        fields: [
          ...(token === undefined ? [] : ['Authorization', `Bearer ${token}`]),
          ...(request.fields ?? []),
        ],
      }),
    async login() {
      const response = await post({ grant_type: 'password', password: server.password })
      return response.json() as Record<string, string> // a token response
    },
  }
}

const statuses = (responses: readonly Response[]): number[] => responses.map(({ status }) => status)

describeTransports('The documented server', (transport) => {
  it('gives tokens that are not to be cached, and admits the access token', async () => {
    const client = await start({}, transport)
    const response = await client.post({ grant_type: 'password', password: client.password })
    expect(response.status).toBe(200)
    expect(response.header('cache-control')).toBe('no-store')
    expect(response.header('content-type')).toBe('application/json')
    const tokens = response.json()
    expect(tokens).toMatchObject({ expires_in: 3600, token_type: 'Bearer' })
    expect((await client.get(String(tokens.access_token))).status).toBe(200)
    expect((await client.get(String(tokens.refresh_token))).status).toBe(401)
  })

  it('refuses forms and credentials by RFC 6749', async () => {
    const { post } = await start({}, transport)
    const errors = await Promise.all([
      post({}),
      post({ grant_type: 'password', password: '' }),
      post({ grant_type: 'password', password: 'wrong' }),
      post({ grant_type: 'refresh_token', refresh_token: 'unknown' }),
      post({ grant_type: 'client_credentials' }),
    ])
    expect(statuses(errors)).toEqual([400, 400, 400, 400, 400])
    expect(errors.map((response) => response.json().error)).toEqual([
      'invalid_request',
      'invalid_request',
      'invalid_grant',
      'invalid_grant',
      'unsupported_grant_type',
    ])
  })

  it('answers a disguised path, HEAD and OPTIONS without a token with 401', async () => {
    const { get } = await start({}, transport)
    const paths = ['//', '/./', '/%2e/', '/..;/', '/oauth/token/', '/oauth/token/../x', '/OAUTH/TOKEN']
    const responses = [
      ...(await Promise.all(paths.map((path) => get(undefined, { path })))),
      await get(undefined, { method: 'HEAD' }),
      await get(undefined, { method: 'OPTIONS' }),
    ]
    expect(new Set(statuses(responses))).toEqual(new Set([401]))
    for (const response of responses) expect(response.header('www-authenticate')).toMatch(/^Bearer /)
  })

  it('counts every request in the window of its endpoint type, and tells so in every response', async () => {
    const client = await start({}, transport)
    const first = limitsOf(await client.get())
    expect(first).toMatchObject({ limit: 60, remaining: 59 })
    expect(limitsOf(await client.post({}))).toMatchObject({ limit: 30, remaining: 29 })
    const responses = await Promise.all(Array.from({ length: 100 }, () => client.get()))
    expect(responses.filter(({ status }) => status === 401)).toHaveLength(59)
    const refused = responses.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(41)
    for (const response of refused) {
      expect(limitsOf(response)).toEqual({ limit: 60, remaining: 0, reset: first.reset })
      expect(Number(response.header('retry-after'))).toBeGreaterThan(50)
    }
  })
})

describe('The documented server', () => {
  it('opens a new window when the reset has come', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const limit = { requests: 2, seconds: 1 }
    const client = await start({ limits: { api: limit, oauth: limit } })
    expect(statuses([await client.get(), await client.get(), await client.get()])).toEqual([401, 401, 429])
    vi.setSystemTime(Date.now() + 999)
    expect((await client.get()).status).toBe(429)
    vi.setSystemTime(Date.now() + 1)
    expect((await client.get()).status).toBe(401)
  })

  it.each(['', 'Host: a\r\nHost: b\r\n'])('answers 400 to a head with %j for a Host', async (host) => {
    for (const tls of [false, true]) {
      const { url } = await startDocumentedServer({ tls })
      const raw = await rawConnection(url)
      raw.write(`GET / HTTP/1.1\r\n${host}Connection: close\r\n\r\n`)
      expect(await raw.closed).toMatch(/^HTTP\/1.1 400 [\s\S]*X-RateLimit-Remaining: 59\r\n/)
    }
  })

  it('answers 401 to two Authorization fields', async () => {
    const client = await start()
    const { access_token = '' } = await client.login()
    const fields = ['Authorization', `Bearer ${access_token}`]
    expect((await client.get(access_token, { fields })).status).toBe(401)
  })

  it('keeps the refresh token, and the earlier access token', async () => {
    const client = await start()
    const first = await client.login()
    const refresh = { grant_type: 'refresh_token', refresh_token: first.refresh_token ?? '' }
    const second = (await client.post(refresh)).json()
    expect(second.refresh_token).toBe(first.refresh_token)
    expect(second.access_token).not.toBe(first.access_token)
    expect((await client.post(refresh)).status).toBe(200)
    expect((await client.get(first.access_token)).status).toBe(200)
  })

  it('rotates refresh tokens on request, and ends the login when a spent one returns', async () => {
    const client = await start({ rotate: true })
    const first = await client.login()
    const refresh = { grant_type: 'refresh_token', refresh_token: first.refresh_token ?? '' }
    const second = (await client.post(refresh)).json()
    expect(second.refresh_token).not.toBe(first.refresh_token)
    expect((await client.get(first.access_token)).status).toBe(200)
    expect((await client.post(refresh)).json().error).toBe('invalid_grant')
    expect((await client.get(String(second.access_token))).status).toBe(401)
  })

  it('gives the same tokens again within the grace', async () => {
    const client = await start({ rotate: true, grace: 60_000 })
    const first = await client.login()
    const refresh = { grant_type: 'refresh_token', refresh_token: first.refresh_token ?? '' }
    expect((await client.post(refresh)).json()).toEqual((await client.post(refresh)).json())
  })

  it('revokes a login where it has a revocation path', async () => {
    const client = await start({ revocationPath: '/oauth/revoke' })
    const { access_token = '' } = await client.login()
    expect((await client.post({ token: access_token }, '/oauth/revoke')).status).toBe(200)
    expect((await client.get(access_token)).status).toBe(401)
  })
})

describe('The faults', () => {
  it('have each a name of its own', () => {
    expect(new Set(FAULTS.map(({ name }) => name)).size).toBe(FAULTS.length)
  })

  it('change nothing else: with any of them a client gets tokens', async () => {
    for (const fault of FAULTS.filter(({ server }) => server === undefined)) {
      const client = await start({ faults: [fault] })
      const response = await client.post({ grant_type: 'password', password: client.password })
      expect([200, 201], fault.name).toContain(response.status)
    }
  })

  const faulty = (name: string): Promise<Client> => start({ faults: [faultNamed(name)] })

  it.each(['tokens-at-slash-after', 'tokens-at-two-slashes', 'tokens-at-percent-encoded'])(
    '%s',
    async (name) => {
      const paths = ['/oauth/token/', '//oauth/token', '/oauth/%74oken']
      const client = await faulty(name)
      const form = { grant_type: 'password', password: client.password }
      const answers = await Promise.all(paths.map((path) => client.post(form, path)))
      expect(statuses(answers).sort()).toEqual([200, 401, 401])
    },
  )

  it('json-form', async () => {
    const client = await faulty('json-form')
    const body = JSON.stringify({ grant_type: 'password', password: client.password })
    const request = { path: '/oauth/token', fields: ['Content-Type', 'application/json'], body }
    expect((await client.connection.send(request)).status).toBe(200)
    expect((await (await start()).connection.send(request)).status).toBe(400)
  })

  it('no-challenge', async () => {
    expect((await (await faulty('no-challenge')).get()).header('www-authenticate')).toBeUndefined()
  })

  it('refusals-uncounted', async () => {
    const client = await faulty('refusals-uncounted')
    const responses = [await client.get(), await client.get()]
    expect(responses.map((response) => limitsOf(response).remaining)).toEqual([60, 60])
  })

  it('late-count: more than the limit pass at once', async () => {
    const client = await start({ faults: [faultNamed('late-count')] })
    const responses = await Promise.all(Array.from({ length: 100 }, () => client.get()))
    expect(responses.filter(({ status }) => status !== 429).length).toBeGreaterThan(60)
  })

  it('fields-twice', async () => {
    const client = await faulty('fields-twice')
    expect((await client.get()).values('x-ratelimit-limit')).toEqual(['60', '60'])
  })

  it('window-per-x-forwarded-for', async () => {
    const client = await faulty('window-per-x-forwarded-for')
    const spoofed = { fields: ['X-Forwarded-For', '192.0.2.1'] }
    await client.get()
    expect(limitsOf(await client.get(undefined, spoofed)).remaining).toBe(59)
  })

  it('flood-breaks-off', async () => {
    const client = await faulty('flood-breaks-off')
    const flood = Promise.all(Array.from({ length: 700 }, () => client.get()))
    await expect(flood).rejects.toThrow(/the connection (?:closed|broke)/)
  })
})
