import { describe, expect, it } from 'vitest'
import { startExpress } from './real/express.ts'
import { PROOF_LIMITS, REAL_SERVERS } from './real/known-departures.ts'
import type { Limits } from './real/real-server.ts'
import { ask, login, loginForm, postForm } from './real/requests.ts'

/** Nothing passes again within a test, not even where the limit is a leaky bucket. */
const ENDLESS: Limits = { api: { requests: 10, window: 3600 }, oauth: { requests: 10, window: 3600 } }

describe.each(REAL_SERVERS)('$name', ({ start, departures }) => {
  it.each(departures)('$promise: $does', async ({ proof }) => {
    await proof(await start(PROOF_LIMITS))
  })

  it('gives tokens for the password alone, admits the access token, and refreshes', async () => {
    const server = await start(PROOF_LIMITS)
    const { access, refresh } = await login(server)
    expect((await ask(server, `Bearer ${access}`)).status).toBe(200)
    expect((await ask(server)).status).toBe(401)
    const refreshed = (await postForm(server, `grant_type=refresh_token&refresh_token=${refresh}`)).json()
    expect((await ask(server, `Bearer ${refreshed.access_token}`)).status).toBe(200)
    expect((await ask(server, `Bearer ${access}`)).status).toBe(200)
  })

  it('limits both endpoint types, each for itself, before it checks anything', async () => {
    const { api, oauth } = ENDLESS
    const server = await start(ENDLESS)
    const { access } = await login(server)
    const statuses: number[] = []
    for (let i = 0; i < api.requests; i += 1) statuses.push((await ask(server)).status)
    expect(statuses).toEqual(Array(api.requests).fill(401))
    expect((await ask(server, `Bearer ${access}`)).status).toBe(429)
    for (let i = 1; i < oauth.requests; i += 1) expect((await postForm(server, '')).status).toBe(400)
    expect((await postForm(server, loginForm(server))).status).toBe(429)
  })
})

describe('@node-oauth/oauth2-server', () => {
  it('gives no tokens without a client_id, where nothing fills it in (C4)', async () => {
    const server = await startExpress({ clientRequired: true })
    expect((await postForm(server, loginForm(server))).json().error).toBe('invalid_client')
  })

  it('rotates the refresh token unless it is told not to (C6)', async () => {
    for (const rotate of [true, false]) {
      const server = await startExpress({ rotate })
      const { refresh } = await login(server)
      const form = `grant_type=refresh_token&refresh_token=${refresh}`
      expect('refresh_token' in (await postForm(server, form)).json()).toBe(rotate)
      expect((await postForm(server, form)).status).toBe(rotate ? 400 : 200)
    }
  })
})
