import { deepStrictEqual, ok } from 'node:assert'
import { realClock } from '../support/clock.ts'
import { PATIENCE } from '../support/running-test.ts'
import { type SidecarOptions, startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** What clients do with a device. Rejects when something does not work. */
export type Scenario = (start: Start, transport: 'http1' | 'h2') => Promise<void>

/** Starts a sidecar in front of the model. */
export type Start = (options?: SidecarOptions) => Promise<TestSidecar>

/** The fields of a browser besides `Host`: with it and the request line they are as long as Chromium's. */
const BROWSER = [
  ['sec-ch-ua', '"Chromium";v="140", "Not=A?Brand";v="24", "Google Chrome";v="140"'],
  ['sec-ch-ua-mobile', '?0'],
  ['sec-ch-ua-platform', '"Linux"'],
  ['Upgrade-Insecure-Requests', '1'],
  [
    'User-Agent',
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  ],
  ['Accept', 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'],
  ['Sec-Fetch-Site', 'none'],
  ['Sec-Fetch-Mode', 'navigate'],
  ['Sec-Fetch-Dest', 'document'],
  ['Accept-Encoding', 'gzip, deflate, br, zstd'],
  ['Accept-Language', 'en-US,en;q=0.9'],
].flat()

/** Three requests, one after the other. */
export const reads: Scenario = async (start) => {
  const sidecar = await start()
  const token = await sidecar.token()
  for (let i = 0; i < 3; i += 1) await expectOk(sidecar, token)
}

/** Three requests of a browser. */
export const browses: Scenario = async (start) => {
  const sidecar = await start()
  const token = await sidecar.token()
  for (let i = 0; i < 3; i += 1) await expectOk(sidecar, token, BROWSER)
}

/** Eight clients with five requests each. */
export const crowds: Scenario = async (start) => {
  const sidecar = await start()
  const token = await sidecar.token()
  const clients = Array.from({ length: 8 }, async () => {
    for (let i = 0; i < 5; i += 1) await expectOk(sidecar, token)
  })
  await Promise.all(clients)
}

function posts(body: string | readonly string[], ...fields: readonly string[]): Scenario {
  return async (start) => {
    const sidecar = await start()
    const token = await sidecar.token()
    const expected = typeof body === 'string' ? body : body.join('')
    for (let i = 0; i < 3; i += 1) {
      const type = ['Content-Type', 'text/plain', ...fields]
      const response = await sidecar.request({ token, body, method: 'POST', fields: type })
      deepStrictEqual([response.status, response.text], [200, expected])
    }
  }
}

export const uploads: Scenario = posts('from the client')
export const uploadsWithoutLength: Scenario = posts(['from ', 'the ', 'client'])
export const uploadsExpecting: Scenario = posts('from the client', 'Expect', '100-continue')

/** A conditional request, and then another one. */
export const revalidates: Scenario = async (start) => {
  const sidecar = await start()
  const token = await sidecar.token()
  for (let i = 0; i < 3; i += 1) {
    const known = await sidecar.request({ token, fields: ['If-None-Match', '"x"'] })
    deepStrictEqual([known.status, known.text], [304, ''])
    await expectOk(sidecar, token)
  }
}

/** Two viewers of a stream, and a third client. */
export const watches: Scenario = async (start) => {
  const sidecar = await start()
  const token = await sidecar.token()
  const fields = ['Authorization', `Bearer ${token}`]
  for (let i = 0; i < 2; i += 1) {
    const viewer = (await sidecar.connect()).start({ path: '/stream', fields })
    // The stream breaks off when the test ends.
    viewer.response.catch(() => {})
    await viewer.waitFor('image/jpeg')
  }
  await expectOk(sidecar, token)
}

/** A POST of the page that the sidecar serves to a browser. */
export const postsFromItsPage: Scenario = async (start) => {
  const sidecar = await start()
  const token = await sidecar.token()
  const { origin } = new URL(sidecar.url)
  const response = await sidecar.request({ token, method: 'POST', body: 'x', fields: ['Origin', origin] })
  deepStrictEqual(response.status, 200)
}

/** Six starts and stops of the sidecar. */
export const startsOften: Scenario = async (start) => {
  for (let i = 0; i < 6; i += 1) {
    const sidecar = await start()
    await expectOk(sidecar, await sidecar.token())
    // The sidecar ends its session at the device within this time.
    await sidecar.stop(PATIENCE)
  }
}

async function expectOk(sidecar: TestSidecar, token: string, fields: readonly string[] = []): Promise<void> {
  const response = await sidecar.request({ token, fields })
  deepStrictEqual([response.status, response.text], [200, 'ok'])
  ok(response.header('Proxy-Status') === undefined)
}

/** Starts sidecars in front of a device with these `upstream` keys. */
export function startInFront(url: string, transport: 'http1' | 'h2', upstream: object): Start {
  return (options = {}) =>
    startSidecar({ transport, device: { url }, clock: realClock(), config: { upstream }, ...options })
}
