import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { systemClock } from '../../src/system/clock.ts'
import { timeOn } from '../../src/verify/conversation.ts'
import type { Report } from '../../src/verify/verdict.ts'
import { prepareSite } from '../process/serve.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { isInstalled, needs, run } from '../support/tools.ts'
import { brokenIn, idsOf, runOptions, runVerify } from '../verify/a-run.ts'
import { NGINX } from '../verify/real/rows.ts'

// These runs wait for windows of half a minute and more, so they are no part of `npm test`. Both run at the same time.

const SOURCE = join(import.meta.dirname, '../../src/main.ts')

/** A run takes about five minutes (ms). */
const TIMEOUT = 600_000

let postern: Promise<{ readonly code: number; readonly stderr: string; readonly report: Report }>
let nginx: Promise<Report>

async function verifyPostern(): typeof postern {
  const site = await prepareSite({
    transport: 'tls',
    // Without the key the limits are the documented ones.
    config: { limits: undefined, oauth: { revocation_path: '/oauth/revoke' } },
  })
  const { url } = await site.serve()
  const file = join(site.directory, 'plain-password')
  writeFileSync(file, PASSWORD, { mode: 0o600 })
  const flags = ['--password-file', file, '--insecure', '--json', '--flood', '5']
  const verified = await run(process.execPath, [SOURCE, 'verify', url, ...flags], { timeout: TIMEOUT })
  return { ...verified, report: JSON.parse(verified.stdout) }
}

async function verifyNginx(): Promise<Report> {
  const { url, password, path } = await NGINX.start()
  const flood = { seconds: 1.5, connections: 10 }
  const options = runOptions(url, password, { path, limits: NGINX.limits, flood })
  // The windows of a real server close by real time.
  return (await runVerify(options, timeOn(systemClock))).report
}

beforeAll(() => {
  postern = verifyPostern()
  postern.catch(() => {})
  if (!isInstalled('nginx')) return
  nginx = verifyNginx()
  nginx.catch(() => {})
})

it(
  'H127 Postern keeps every promise in windows of the documented length',
  async () => {
    const { code, stderr, report } = await postern
    expect(brokenIn(report)).toEqual({})
    expect([code, idsOf(report, 'not testable')], stderr).toEqual([0, ['C8']])
    expect(report.floods.map(({ endpoint, passed }) => [endpoint, passed])).toEqual([
      ['oauth', 30],
      ['api', 60],
    ])
    expect(report.tokens).toBe('the server answered 200 to each revocation')
    expect(report.seconds).toBeLessThan(400)
  },
  TIMEOUT,
)

it(
  'H127 finds what nginx limit_req breaks, and nothing else',
  async () => {
    needs('nginx')
    const report = await nginx
    expect(idsOf(report, 'broken'), JSON.stringify(brokenIn(report))).toEqual(NGINX.breaksInTime)
  },
  TIMEOUT,
)
