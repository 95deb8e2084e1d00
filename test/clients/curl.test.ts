import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { encodeForm, PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { needs, run } from '../support/tools.ts'
import { describeTransports } from '../support/transports.ts'

describeTransports('curl', (transport) => {
  /** Runs curl as a user does, and checks the certificate. The last line of its output is version and status. */
  async function curl(sidecar: TestSidecar, path: string, ...args: string[]) {
    needs('curl')
    const trust: string[] = []
    if (transport !== 'http1') {
      const file = join(temporaryDirectory(), 'ca.pem')
      writeFileSync(file, await sidecar.certificate())
      trust.push('--cacert', file)
    }
    const version = transport === 'h2' ? '--http2' : '--http1.1'
    const format = '\n%{http_version} %{http_code}'
    const done = await run('curl', ['-sS', version, ...trust, '-w', format, ...args, `${sidecar.url}${path}`])
    expect(done.stderr).toBe('')
    expect(done.code).toBe(0)
    const [, body = '', protocol, status] = /^([\s\S]*)\n(\S+) (\d+)$/.exec(done.stdout) ?? []
    expect(protocol).toBe(transport === 'h2' ? '2' : '1.1')
    return { body, status: Number(status) }
  }

  it('gets tokens by the password grant, calls the device, refreshes and calls again', async () => {
    const sidecar = await startSidecar({ transport })
    const granted = await curl(
      sidecar,
      '/oauth/token',
      '-d',
      'grant_type=password',
      '--data-urlencode',
      `password=${PASSWORD}`,
    )
    expect(granted.status).toBe(200)
    const first = JSON.parse(granted.body)
    const called = await curl(sidecar, '/status?a=1', '-H', `Authorization: Bearer ${first.access_token}`)
    expect(called).toEqual({ status: 200, body: 'from the device' })
    expect(sidecar.device.requests[0]?.target).toBe('/status?a=1')

    const refreshed = await curl(
      sidecar,
      '/oauth/token',
      '-d',
      'grant_type=refresh_token',
      '-d',
      `refresh_token=${first.refresh_token}`,
    )
    expect(refreshed.status).toBe(200)
    const second = JSON.parse(refreshed.body)
    const upload = ['--oauth2-bearer', second.access_token, '--data-binary', 'reading=7']
    expect((await curl(sidecar, '/values', ...upload)).status).toBe(200)
    expect(sidecar.device.requests[1]?.body?.toString()).toBe('reading=7')
  })

  it('is refused for a wrong password and without a token', async () => {
    const sidecar = await startSidecar({ transport })
    const wrong = await curl(sidecar, '/oauth/token', '-d', 'grant_type=password&password=wrong')
    expect([wrong.status, JSON.parse(wrong.body).error]).toEqual([400, 'invalid_grant'])
    const none = await curl(sidecar, '/status')
    expect([none.status, JSON.parse(none.body).error]).toEqual([401, 'invalid_token'])
  })

  it('sends a form and an upload with Expect: 100-continue', async () => {
    const sidecar = await startSidecar({ transport })
    const form = encodeForm({ grant_type: 'password', password: PASSWORD, username: 'x'.repeat(3000) })
    const granted = await curl(sidecar, '/oauth/token', '-d', form, '-H', 'Expect: 100-continue')
    expect(granted.status).toBe(200)
    const { access_token } = JSON.parse(granted.body)
    const file = join(temporaryDirectory(), 'upload')
    writeFileSync(file, 'x'.repeat(3_000_000))
    const args = ['--oauth2-bearer', access_token, '-T', file, '-H', 'Expect: 100-continue']
    const uploaded = curl(sidecar, '/upload', ...args)
    // The device gets the head a moment before the body.
    await sidecar.device.waitForRequests(1)
    await sidecar.clock.advance(20)
    expect((await uploaded).status).toBe(200)
    expect(sidecar.device.requests[0]?.body).toHaveLength(3_000_000)
  })

  it('receives the refusal of an upload that it has begun to send', async () => {
    const sidecar = await startSidecar({ transport })
    const file = join(temporaryDirectory(), 'upload')
    writeFileSync(file, 'x'.repeat(3_000_000))
    const refused = await curl(sidecar, '/upload', '-T', file)
    expect(refused.status).toBe(401)
    expect(sidecar.device.byteCount).toBe(0)
  })
})
