import { expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { blocksOf, replaceIn, shellBlock } from '../support/pages.ts'
import { until } from '../support/redis.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { needs } from '../support/tools.ts'

const PAGE = 'docs/api.md'

/** The block that names the sidecar and its certificate, with those of the test. */
function names({ url, directory }: TestSidecar): string {
  const block = replaceIn(shellBlock('docs/api.md', 'POSTERN='), 'https://localhost:8443', url)
  return replaceIn(block, '/var/lib/postern', `${directory}/state`)
}

it.concurrent('the commands of docs/api.md do what the page says', async () => {
  for (const tool of ['script', 'bash', 'curl']) needs(tool)
  const sidecar = await startSidecar({
    transport: 'tls',
    // It moves when a request is past the limit: curl waits for 5 s then.
    clock: stillClock(),
    config: {
      listen: { tls: 'auto' },
      oauth: { revocation_path: '/oauth/revoke' },
      limits: { api: { requests: 3, window: '5s' } },
    },
  })
  const call = shellBlock('docs/api.md', 'curl -sS -i')
  const refresh = shellBlock('docs/api.md', 'refresh() {')
  const logOut = shellBlock('docs/api.md', '/oauth/revoke')
  const script = [
    names(sidecar),
    shellBlock('docs/api.md', 'stty -echo'),
    call,
    `ACCESS=expired; ${refresh}`, // a request with the expired token, then one with the new
    refresh, // past the limit, so curl waits
    logOut,
    call,
  ].join('\necho\n')
  const session = runOnTerminal(['bash', '-c', script], { env: process.env }, ['Password: ', `${PASSWORD}\r`])
  const limited = until(async () => (await sidecar.metric('postern_rate_limited_total')) > 0)
  await Promise.race([session, limited])
  await sidecar.clock.advance(5_000)
  const { screen, code } = await session
  expect(code, screen).toBe(0)
  expect(screen).toMatch(/"refresh_token":/)
  expect(screen.match(/HTTP\/2 \d+|^200$|^curl: .*\d{3}$|from the device/gm)).toEqual([
    ...['HTTP/2 200', 'from the device'],
    ...['curl: (22) The requested URL returned error: 401', 'from the device'],
    ...['curl: (22) The requested URL returned error: 429', 'from the device'],
    ...['200', 'HTTP/2 401'],
  ])
})

it('the refusals in docs/api.md are those that Postern sends', async () => {
  const [unauthorized = '', limited = '', ...others] = blocksOf(PAGE, 'http')
  expect(others).toEqual([])
  const sidecar = await startSidecar({ config: { limits: { api: { requests: 1 } } } })
  for (const printed of [unauthorized, limited]) {
    const { status, fields: sent, text: body } = await sidecar.request({ token: 'unknown' })
    const [head = '', json = ''] = printed.split('\n\n')
    const [statusLine, ...fields] = head.split('\n')
    expect(statusLine).toContain(`HTTP/1.1 ${status} `)
    expect(json).toBe(`${body}\n`)
    const printedNames = fields.map((field) => field.slice(0, field.indexOf(':')))
    expect(printedNames).toEqual(sent.filter((_, index) => index % 2 === 0))
  }
})
