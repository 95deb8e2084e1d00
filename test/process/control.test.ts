import { once } from 'node:events'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { readRevocation } from '../../src/admin/operator-revocation.ts'
import type { Response } from '../support/message.ts'
import { PASSWORD, type Tokens } from '../support/sidecar.ts'
import { openWebSocket } from '../support/websocket.ts'
import { prepareSite, runPostern, type Serving, type Site, tokensOf } from './serve.ts'
import { broken, holdResponses } from './streams.ts'

const REVOKED = 'postern_tokens_revoked_total'

describe('Through the control socket,', () => {
  let site: Site
  let sidecar: Serving

  beforeAll(async () => {
    site = await prepareSite({ config: { listen: { trusted_proxies: ['127.0.0.1'] } } })
    holdResponses(site.device)
    sidecar = await site.serveHere()
  })

  beforeEach(() => sidecar.revoke({ all: true }))

  async function grantFrom(from: string, fields: readonly string[] = []): Promise<Tokens> {
    const connection = await sidecar.connect({ from })
    const response = await connection.send({
      path: '/oauth/token',
      body: new URLSearchParams({ grant_type: 'password', password: PASSWORD }).toString(),
      fields: ['Content-Type', 'application/x-www-form-urlencoded', ...fields],
    })
    connection.close()
    return tokensOf(response)
  }

  it('`postern status` lists the grants as a table and as JSON', async () => {
    const begun = Date.now()
    const pair = await grantFrom('127.0.0.2')
    await sidecar.refresh(pair.refresh_token)
    await grantFrom('127.0.0.3')
    const [table, json] = await Promise.all([site.postern('status'), site.postern('status', '--json')])
    expect([table.code, table.stderr, json.code, json.stderr]).toEqual([0, '', 0, ''])
    const status = JSON.parse(json.stdout)
    expect(status).toMatchObject({
      tokens: { access: 3, refresh: 2 },
      grants: [
        { client: '127.0.0.2', accessTokens: 2 },
        { client: '127.0.0.3', accessTokens: 1 },
      ],
    })
    const [head, ...rows] = table.stdout.split('\n')
    expect(head).toMatch(/^GRANT +CLIENT +AGE +EXPIRES +USED +TOKENS$/)
    for (const [i, { id, client, issuedAt, expiresAt, usedAt, accessTokens }] of status.grants.entries()) {
      const [shownId, shownClient, age, expires, used, count] = rows[i]?.split(/ +/) ?? []
      expect([shownId, shownClient, count]).toEqual([id, client, String(accessTokens)])
      expect([age, expires]).toEqual([expect.stringMatching(/^\d+[sm]$/), '6d'])
      // The first grant was refreshed, the second was not used since its login.
      expect(used === '-').toBe(usedAt === null)
      expect(usedAt === null).toBe(i === 1)
      expect(issuedAt).toBeGreaterThan(begun - 1000)
      expect(Math.abs(expiresAt - issuedAt - 604_800_000)).toBeLessThan(1000)
    }
    expect(table.stdout).toContain('2 grants, 3 access tokens, 2 refresh tokens\n')
    // Neither output contains a token.
    for (const secret of [pair.access_token, pair.refresh_token]) {
      expect(table.stdout + json.stdout).not.toContain(secret)
    }
  })

  it('H160 `postern explain` tells of one request, lists the last ones, and says when one is not remembered', async () => {
    const response = await sidecar.request({ path: '/why?secret' })
    const { status } = response
    const id = response.header('x-request-id') ?? ''
    const [text, json, list, listed, unknown] = await Promise.all([
      site.postern('explain', id),
      site.postern('explain', id, '--json'),
      site.postern('explain'),
      site.postern('explain', '--json'),
      site.postern('explain', 'unknown'),
    ])
    expect([status, text.code, text.stderr, json.code, list.code, listed.code]).toEqual([401, 0, '', 0, 0, 0])
    expect(text.stdout).toMatch(
      /^Id +(\S+)\nArrived +\S+Z, \d+s ago\nRequest +GET \/why over .*\nClient .*\nWindow .*\nToken +None: .*\nDecision +Refused with 401, /s,
    )
    expect(JSON.parse(json.stdout)).toMatchObject({ explanations: [{ request: { id, path: '/why' } }] })
    expect(list.stdout).toMatch(/^AGE +STATUS +REFUSAL +ID\n +CLIENT +DURATION +REQUEST\n/)
    expect(list.stdout).toMatch(
      new RegExp(
        `^\\d+s +401     unauthorized: missing +${id}\n     127\\.0\\.0\\.1  \\d+ ms  GET /why$`,
        'm',
      ),
    )
    expect(JSON.parse(listed.stdout).requests).toContainEqual(expect.objectContaining({ id, status: 401 }))
    expect([unknown.code, unknown.stdout]).toEqual([1, ''])
    expect(await site.postern('explain', 'x'.repeat(100_000))).toEqual({
      code: 2,
      signal: null,
      stdout: '',
      stderr: 'postern explain: the id of a request has at most 128 characters\n',
    })
    expect(unknown.stderr).toMatch(
      /^postern explain: no request with this id is remembered; those that are: \d+ answered.*, \d+ refused for another reason since \S+Z\. /,
    )
  })

  it('H222 `postern revoke --grant` revokes one grant, which the log names, and closes its tunnel, and nothing else', async () => {
    const gone = await grantFrom('127.0.0.2')
    const [{ id = '' } = {}] = (await sidecar.status()).grants
    const kept = await grantFrom('127.0.0.2')
    const tunnels = await Promise.all(
      [gone, kept].map(({ access_token }) => openWebSocket(sidecar.url, { token: access_token })),
    )
    const closed = tunnels.map(({ socket }) => once(socket, 'close'))
    const before = await sidecar.metric(REVOKED, 'reason="operator"')
    expect(await site.postern('revoke', '--grant', id)).toEqual({
      code: 0,
      signal: null,
      stdout: '1 grant revoked\n',
      stderr: '',
    })
    await closed[0]
    expect(tunnels[1]?.socket.readyState).toBe(tunnels[1]?.socket.OPEN)
    expect(await Promise.all([gone, kept].map(({ access_token }) => sidecar.use(access_token)))).toEqual([
      401, 200,
    ])
    expect((await sidecar.refresh(gone.refresh_token)).status).toBe(400)
    expect(await sidecar.metric(REVOKED, 'reason="operator"')).toBe(before + 1)
    expect(await sidecar.waitForLog('tokens revoked', ({ grants }) => grants === 1)).toMatchObject({
      reason: 'operator',
      ids: [id],
    })
    // A revoked grant is unknown.
    expect(await site.postern('revoke', '--grant', id)).toEqual({
      code: 1,
      signal: null,
      stdout: '',
      stderr: `postern revoke: nothing revoked: no such grant; postern status lists the grants\n`,
    })
  })

  it('`postern revoke --client` revokes the grants of one address and closes their streams', async () => {
    const gone = [await grantFrom('127.0.0.2'), await grantFrom('127.0.0.2')]
    const kept = await grantFrom('127.0.0.3')
    const stream = (await sidecar.connect()).start({
      path: '/events/client',
      fields: ['Authorization', `Bearer ${gone[0]?.access_token}`],
    })
    await stream.waitFor('first piece')
    const { code, stdout, stderr } = await site.postern('revoke', '--client', '127.0.0.2')
    expect([code, stdout, stderr]).toEqual([0, '2 grants revoked\n', ''])
    await broken(stream)
    expect(await Promise.all([...gone, kept].map(({ access_token }) => sidecar.use(access_token)))).toEqual([
      401, 401, 200,
    ])
  })

  it('C17 a revocation identifies clients as the limits do: an IPv6 client by its /64, a mapped address as IPv4', async () => {
    for (const address of [
      '2001:db8:1:2::1',
      '2001:db8:1:2:ffff::',
      '2001:db8:1:3::1',
      '2001:db8:1:4::1',
      '192.0.2.7',
      '192.0.2.8',
    ]) {
      await grantFrom('127.0.0.1', ['X-Forwarded-For', address])
    }
    for (const client of ['2001:DB8:1:2::99', '2001:db8:1:3::/64', '::ffff:192.0.2.7']) {
      await sidecar.revoke({ client })
    }
    const left = (await sidecar.status()).grants.map(({ client }) => client)
    expect(left).toEqual(['2001:db8:1:4::1', '192.0.2.8'])
  })

  it('`postern revoke` exits with 2 for a client that is not an address', async () => {
    for (const client of ['192.0.2.300', '192.0.2.0/24', '2001:db8::/32', 'example', '', '192.0.2.7 ']) {
      expect(readRevocation(JSON.stringify({ client })), client).toBeUndefined()
    }
    expect(await site.postern('revoke', '--client', '192.0.2.0/24')).toEqual({
      code: 2,
      signal: null,
      stdout: '',
      stderr: 'postern revoke: --client: must be an IP address, such as 192.0.2.7 or 2001:db8::7, or unix\n',
    })
  })

  it('`postern revoke` exits with 1 and the reason if the client has no grant or the grant is unknown', async () => {
    const pair = await grantFrom('127.0.0.2')
    const runs = await Promise.all([
      site.postern('revoke', '--client', '127.0.0.3'),
      site.postern('revoke', '--client', 'unix'),
      site.postern('revoke', '--grant', 'unknown'),
    ])
    expect(runs.map(({ code, stdout, stderr }) => [code, stdout, stderr])).toEqual(
      ['no grant of client 127.0.0.3', 'no grant of client unix', 'no such grant'].map((what) => [
        1,
        '',
        `postern revoke: nothing revoked: ${what}; postern status lists the grants\n`,
      ]),
    )
    expect(await sidecar.use(pair.access_token)).toBe(200)
  })

  it('`postern revoke --all` revokes every grant, and the password stays valid', async () => {
    const pairs = [await grantFrom('127.0.0.2'), await grantFrom('127.0.0.3'), await grantFrom('127.0.0.4')]
    const { code, stdout, stderr } = await site.postern('revoke', '--all')
    expect([code, stdout, stderr]).toEqual([0, '3 grants revoked\n', ''])
    expect(await Promise.all(pairs.map(({ access_token }) => sidecar.use(access_token)))).toEqual([
      401, 401, 401,
    ])
    expect(await sidecar.use((await sidecar.grant()).access_token)).toBe(200)
  })

  it('`postern revoke` exits with 2 without exactly one of its three options', async () => {
    const pair = await sidecar.grant()
    const runs = await Promise.all([
      site.postern('revoke'),
      site.postern('revoke', '--all', '--client', '127.0.0.1'),
    ])
    for (const run of runs) {
      expect(run).toEqual({
        code: 2,
        signal: null,
        stdout: '',
        stderr: 'postern revoke: name exactly one of --all, --client ADDRESS and --grant ID\n',
      })
    }
    expect(await sidecar.use(pair.access_token)).toBe(200)
  })

  it('the commands exit with 1 and the reason if no sidecar runs', async () => {
    const [empty, killed] = await Promise.all([prepareSite(), prepareSite()])
    await (await killed.serve()).kill() // leaves a stale socket
    const message = ({ stateDir }: Site): string =>
      `no sidecar is running on ${stateDir} (looked for ${stateDir}/control.sock); name the service's with --instance or --set state_dir=...\n`
    const runs = await Promise.all([
      empty.postern('status'),
      empty.postern('revoke', '--all'),
      killed.postern('status', '--json'),
      runPostern(['revoke', '--all', '--config', killed.configFile]),
    ])
    expect(runs.map(({ code, stdout, stderr }) => [code, stdout, stderr])).toEqual([
      [1, '', `postern status: ${message(empty)}`],
      [1, '', `postern revoke: ${message(empty)}`],
      [1, '', `postern status: ${message(killed)}`],
      [1, '', `postern revoke: ${message(killed)}`],
    ])
  })
})

describe('RFC 7009 at oauth.revocation_path', () => {
  let sidecar: Serving
  let site: Site

  beforeAll(async () => {
    site = await prepareSite({ config: { oauth: { revocation_path: '/oauth/revoke' } } })
    holdResponses(site.device)
    sidecar = await site.serveHere()
  })

  const revoke = (form: Record<string, string> | string): Promise<Response> =>
    sidecar.postToken(form, { path: '/oauth/revoke' })

  it.each(['access_token', 'refresh_token'] as const)(
    'answers 200 for an %s, and revokes it with every token of its grant',
    async (kind) => {
      const [pair, other] = [await sidecar.grant(), await sidecar.grant()]
      const refreshed = tokensOf(await sidecar.refresh(pair.refresh_token))
      const stream = (await sidecar.connect()).start({
        path: '/events/7009',
        fields: ['Authorization', `Bearer ${refreshed.access_token}`],
      })
      await stream.waitFor('first piece')
      const before = await sidecar.metric(REVOKED, 'reason="client"')
      expect((await revoke({ token: pair[kind], token_type_hint: kind })).status).toBe(200)
      await broken(stream)
      for (const { access_token } of [pair, refreshed]) {
        const response = await sidecar.request({ token: access_token })
        expect([response.status, response.json().error]).toEqual([401, 'invalid_token'])
      }
      expect((await sidecar.refresh(pair.refresh_token)).status).toBe(400)
      expect(await sidecar.use(other.access_token)).toBe(200)
      expect(await sidecar.metric(REVOKED, 'reason="client"')).toBe(before + 1)
    },
  )

  it('answers 200 for a token that is unknown or revoked, or has a wrong hint', async () => {
    const pair = await sidecar.grant()
    const forms = [
      { token: 'unknown' },
      { token: pair.access_token, token_type_hint: 'refresh_token' },
      { token: pair.access_token, token_type_hint: 'no_such_type' },
    ]
    for (const form of forms) expect((await revoke(form)).status).toBe(200)
    expect(await sidecar.use(pair.access_token)).toBe(401)
  })

  it('answers 400 to a request without a token, with two, or without a form, and revokes nothing', async () => {
    const pair = await sidecar.grant()
    const responses = [
      await revoke({ token_type_hint: 'access_token' }),
      await revoke({ token: '' }),
      await revoke(`token=${pair.access_token}&token=${pair.access_token}`),
      await sidecar.request({
        method: 'POST',
        path: '/oauth/revoke',
        body: JSON.stringify({ token: pair.access_token }),
        fields: ['Content-Type', 'application/json'],
      }),
    ]
    for (const response of responses)
      expect([response.status, response.json().error]).toEqual([400, 'invalid_request'])
    expect(await sidecar.use(pair.access_token)).toBe(200)
  })

  it('answers GET with 400 and Allow, and reads the token from the body only', async () => {
    const pair = await sidecar.grant()
    const path = `/oauth/revoke?token=${pair.access_token}`
    const response = await sidecar.request({ path })
    expect([response.status, response.json().error, response.header('allow')]).toEqual([
      400,
      'invalid_request',
      'POST',
    ])
    expect((await sidecar.postToken({}, { path })).status).toBe(400)
    expect(await sidecar.use(pair.access_token)).toBe(200)
  })

  it('shares the rate limit of /oauth/token, and never reaches the device', async () => {
    const pair = await sidecar.grant()
    const [token, revocation] = [
      await sidecar.refresh(pair.refresh_token),
      await revoke({ token: 'unknown' }),
    ]
    const remaining = [token, revocation].map((response) => Number(response.header('x-ratelimit-remaining')))
    expect(remaining[1]).toBe((remaining[0] ?? 0) - 1)
    expect(revocation.header('cache-control')).toBe('no-store')
    expect(site.device.requests.filter(({ target }) => target.startsWith('/oauth'))).toEqual([])
  })
})

it('RFC 7009 is off by default: the path belongs to the device', async () => {
  const site = await prepareSite()
  const sidecar = await site.serveHere()
  const { access_token } = await sidecar.grant()
  const path = '/oauth/revoke'
  expect((await sidecar.postToken({ token: access_token }, { path })).status).toBe(401)
  expect(site.device.requests).toHaveLength(0)
  const forwarded = await sidecar.postToken({ token: access_token }, { path, token: access_token })
  expect([forwarded.status, forwarded.text]).toEqual([200, 'from the device'])
  expect(site.device.requests[0]?.body?.toString()).toBe(`token=${access_token}`)
  expect(await sidecar.use(access_token)).toBe(200)
})
