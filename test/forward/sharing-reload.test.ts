import { expect, it } from 'vitest'
import { prepareSite, type Served, type Site } from '../process/serve.ts'
import { startDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'

/** A sidecar that keeps what it shares for an hour, in front of a device that says how often it was asked. */
async function start(): Promise<{ site: Site; sidecar: Served; ask(): Promise<string>; asked(): number }> {
  let asked = 0
  const device = await startDevice((request, response) => {
    asked += 1
    response.setHeader('RateLimit', 'of the device')
    response.setHeader('Refresh', `5; url=${device.url}/next`)
    response.end(`${asked}: ${request.headers.via === undefined} ${request.headers['x-real-ip']}`)
  })
  const site = await prepareSite({
    device,
    config: { upstream: { share: { paths: ['/status'], for: '1h' } } },
  })
  const sidecar = await site.serve()
  const { access_token: token } = await sidecar.grant()
  return {
    ...{ site, sidecar, asked: () => asked },
    async ask() {
      const response = await sidecar.request({ token, path: '/status' })
      const limit = response.values('ratelimit').join()
      return `${response.text} ${limit} ${response.header('refresh')?.includes(device.url)}`
    },
  }
}

it('H183 after a reload no request gets a response that was shared before, in either direction of the change', async () => {
  const { site, sidecar, ask, asked } = await start()
  const kept = '1: false undefined of the device true'
  expect([await ask(), await ask()]).toEqual([kept, kept])
  const changes = [
    [{ upstream: { headers: { 'X-Real-IP': 'set' } } }, '2: false set of the device true'],
    [{ upstream: { headers: { 'X-Real-IP': undefined } } }, '3: false undefined of the device true'],
    // The device sees no difference here: the response does.
    [{ upstream: { rewrite: 'on' } }, '4: false undefined of the device false'],
    [{ limits: { ietf_headers: true } }, /^5: false undefined "api";r=\d+;t=\d+ false$/],
    [{ upstream: { headers: { Via: null } } }, /^6: true undefined "api";/],
    [{ realm: 'another' }, /^7: true undefined "api";/],
  ] as const
  for (const [i, [change, expected]] of changes.entries()) {
    site.configure(change)
    await expect.poll(() => sidecar.logged('configuration reloaded').length).toBe(i + 1)
    for (let again = 0; again < 2; again += 1) expect(await ask()).toMatch(expected)
    expect(asked()).toBe(i + 2)
  }
})

it('H183 a response that is at the device during a reload ends with the fields that it began with, and no later request joins it', async () => {
  const answers: (() => void)[] = []
  const device = await startDevice((request, response) => {
    response.setHeader('Refresh', `5; url=${device.url}/next`)
    answers.push(() => response.end(request.headers['x-real-ip']))
  })
  const share = { paths: ['/status'], for: '1h' }
  const sidecar = await startSidecar({
    device,
    config: { upstream: { share, headers: { 'X-Real-IP': 'the former' } } },
  })
  const token = await sidecar.token()
  const ask = async (): Promise<readonly unknown[]> => {
    const response = await sidecar.request({ token, path: '/status' })
    return [response.text, response.header('refresh')?.includes(device.url)]
  }
  const former = ask()
  await device.waitForRequests(1)
  await sidecar.reload({ upstream: { rewrite: 'on', headers: { 'X-Real-IP': 'the later' } } })
  const later = ask()
  await device.waitForRequests(2)
  for (const answer of answers) answer()
  expect(await former).toEqual(['the former', true])
  expect([await later, await ask()]).toEqual(Array(2).fill(['the later', false]))
  expect(device.requests).toHaveLength(2)
})
