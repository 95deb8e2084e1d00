import * as client from 'openid-client'
import { Agent, fetch as undiciFetch } from 'undici'
import { expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

describeTransports('openid-client', (transport) => {
  async function configure(sidecar: TestSidecar, auth: client.ClientAuth): Promise<client.Configuration> {
    const server = { issuer: sidecar.url, token_endpoint: `${sidecar.url}/oauth/token` }
    const config = new client.Configuration(server, 'any-client', {}, auth)
    if (transport === 'http1') client.allowInsecureRequests(config)
    else {
      const agent = new Agent({
        connect: { ca: await sidecar.certificate() },
        allowH2: transport === 'h2',
      })
      closeLater(() => agent.close())
      config[client.customFetch] = (url, options) =>
        // Both are the standard `fetch`; undici and the DOM declare separate types for it.
        undiciFetch(url, { ...(options as object), dispatcher: agent }) as unknown as Promise<Response>
    }
    return config
  }

  it.each([
    ['as a public client', client.None()],
    ['with a secret in the body', client.ClientSecretPost('a-secret')],
    ['with a secret in Authorization: Basic', client.ClientSecretBasic('a secret: ü')],
  ])('gets tokens by password, refreshes, and calls the device, %s', async (_name, auth) => {
    const sidecar = await startSidecar({ transport })
    const config = await configure(sidecar, auth)
    const first = await client.genericGrantRequest(config, 'password', {
      username: 'admin',
      password: PASSWORD,
      scope: 'all',
    })
    expect(first.expiresIn()).toBeGreaterThan(3590)
    expect(first.token_type).toBe('bearer')
    const second = await client.refreshTokenGrant(config, first.refresh_token ?? '')
    expect(second.access_token).not.toBe(first.access_token)
    for (const tokens of [first, second]) {
      const url = new URL('/status', sidecar.url)
      const response = await client.fetchProtectedResource(config, tokens.access_token, url, 'GET')
      expect([response.status, await response.text()]).toEqual([200, 'from the device'])
    }
  })

  it('reads the error of each refusal', async () => {
    const sidecar = await startSidecar({ transport })
    const config = await configure(sidecar, client.None())
    await expect(client.genericGrantRequest(config, 'password', { password: 'wrong' })).rejects.toMatchObject(
      {
        status: 400,
        error: 'invalid_grant',
        error_description: expect.any(String),
      },
    )
    await expect(client.refreshTokenGrant(config, 'unknown')).rejects.toMatchObject({
      error: 'invalid_grant',
    })
    await expect(client.genericGrantRequest(config, 'password', {})).rejects.toMatchObject({
      error: 'invalid_request',
    })
    await expect(client.clientCredentialsGrant(config)).rejects.toMatchObject({
      error: 'unsupported_grant_type',
    })
    // The client parses the challenge of C11 by the grammar of RFC 9110 and reports it as the cause.
    const url = new URL('/status', sidecar.url)
    await expect(client.fetchProtectedResource(config, 'unknown', url, 'GET')).rejects.toMatchObject({
      status: 401,
      cause: [{ scheme: 'bearer', parameters: { realm: 'device', error: 'invalid_token' } }],
    })
  })
})
