import { expect, it } from 'vitest'
import { DOCUMENTED_LIMITS, type VerifyOptions } from '../../src/verify/options.ts'
import { OUTSIDE, type OutsideId } from '../../src/verify/promises.ts'
import type { Report } from '../../src/verify/verdict.ts'
import { brokenIn, idsOf, movedTime, runOptions, runVerify, WITHOUT_FLOODS } from './a-run.ts'
import { type DocumentedServerOptions, startDocumentedServer } from './documented-server.ts'
import { BEARER_FAULTS } from './faults/bearer.ts'
import type { Fault } from './faults/fault.ts'
import { FORM_FAULTS } from './faults/forms.ts'
import { LIMIT_FAULTS } from './faults/limits.ts'
import { TOKEN_FAULTS } from './faults/tokens.ts'

const FAULTS: readonly Fault[] = [...FORM_FAULTS, ...TOKEN_FAULTS, ...BEARER_FAULTS, ...LIMIT_FAULTS]

/** What used-up windows and floods show, which are most of the requests of a run. */
const OF_WINDOWS: readonly OutsideId[] = ['C13', 'C14', 'C15', 'C16', 'H69', 'H125']
const OF_ROWS = [...OUTSIDE.keys()].filter((id) => !OF_WINDOWS.includes(id))

/** Small windows show the same as large ones, and the client beside a flood, whose requests are its length, sends fewer. */
const SMALL = { limits: { api: { requests: 20, window: 60 }, oauth: { requests: 15, window: 60 } } }

/** The run that shows a fault: one of the rows needs no used-up windows, and one that takes floods no rows. */
function changesFor({ run, breaks, untestable }: Fault): Partial<VerifyOptions> {
  const ids = [...OUTSIDE.keys()].filter((id) => id in { ...breaks, ...untestable })
  if (run === 'windows') return { only: WITHOUT_FLOODS }
  if (run === 'complete') return { ...SMALL, only: [...OF_WINDOWS, ...ids] }
  return ids.every((id) => OF_ROWS.includes(id)) ? { quick: true, only: OF_ROWS } : { quick: true }
}

/** Runs `verify` against the documented server, which has its clock. */
async function reportOn(server: DocumentedServerOptions, changes: Partial<VerifyOptions>): Promise<Report> {
  const time = movedTime()
  const { revocationPath } = server
  const options = { limits: DOCUMENTED_LIMITS, revocationPath, ...changes }
  const { api, oauth } = options.limits
  const limits = {
    api: { requests: api.requests, seconds: api.window },
    oauth: { requests: oauth.requests, seconds: oauth.window },
  }
  const { url, password } = await startDocumentedServer({ ...server, limits, now: time.wall })
  return (await runVerify(runOptions(url, password, { path: '/', ...options }), time)).report
}

const GOOD: Readonly<Record<string, DocumentedServerOptions>> = {
  'over cleartext': {},
  'over TLS, with rotation': { tls: true, rotate: true },
  'with rotation and a grace': { rotate: true, grace: 10_000 },
  'with windows on the clock, and revocation': { onTheClock: true, revocationPath: '/oauth/revoke' },
}

it.each(Object.entries(GOOD))(
  'H127 finds every promise kept by a server that keeps the documented API, %s',
  async (_name, server) => {
    const report = await reportOn(server, {})
    expect(brokenIn(report)).toEqual({})
    expect(idsOf(report, 'not testable')).toEqual(['C8'])
    expect(report.promises.map(({ id }) => id)).toEqual([...OUTSIDE.keys()])
  },
)

it.each(FAULTS)('H127 finds a server that $does, and nothing else', async (fault) => {
  const report = await reportOn({ ...fault.server, faults: [fault] }, changesFor(fault))
  const found = idsOf(report, 'broken').filter((id) => !fault.alsoBreaks?.includes(id))
  expect(found.sort(), JSON.stringify(brokenIn(report), null, 1)).toEqual(Object.keys(fault.breaks).sort())
  for (const { id, departures, result, notes } of report.promises) {
    const reason = fault.untestable?.[id]
    if (reason !== undefined)
      expect([result, ...notes]).toEqual(['not testable', expect.stringMatching(reason)])
    const came = departures.map((each) => each.came).join('\n')
    if (found.includes(id)) expect(came, id).toMatch(fault.breaks[id] ?? /^$/)
  }
})
