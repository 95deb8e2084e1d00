import { expect, it } from 'vitest'
import { DOCUMENTED_LIMITS, type VerifyOptions } from '../../src/verify/options.ts'
import { OUTSIDE } from '../../src/verify/promises.ts'
import type { Report } from '../../src/verify/verdict.ts'
import { brokenIn, idsOf, movedTime, runOptions, runVerify, WITHOUT_FLOODS } from './a-run.ts'
import { type DocumentedServerOptions, startDocumentedServer } from './documented-server.ts'
import { BEARER_FAULTS } from './faults/bearer.ts'
import type { Fault } from './faults/fault.ts'
import { FORM_FAULTS } from './faults/forms.ts'
import { LIMIT_FAULTS } from './faults/limits.ts'
import { TOKEN_FAULTS } from './faults/tokens.ts'

const FAULTS: readonly Fault[] = [...FORM_FAULTS, ...TOKEN_FAULTS, ...BEARER_FAULTS, ...LIMIT_FAULTS]

const CHANGES: Readonly<Record<'quick' | NonNullable<Fault['run']>, Partial<VerifyOptions>>> = {
  quick: { quick: true },
  windows: { only: WITHOUT_FLOODS },
  complete: {},
}

/** Runs `verify` against the documented server, which has its clock. */
async function reportOn(
  server: DocumentedServerOptions,
  run: keyof typeof CHANGES,
  wait = 0,
): Promise<Report> {
  const time = movedTime()
  time.advance(wait)
  const { url, password } = await startDocumentedServer({ ...server, now: time.wall })
  const { revocationPath } = server
  const options = runOptions(url, password, { path: '/', revocationPath, ...CHANGES[run] })
  return (await runVerify({ ...options, limits: DOCUMENTED_LIMITS }, time)).report
}

const GOOD: Readonly<Record<string, DocumentedServerOptions>> = {
  'over cleartext': {},
  'over TLS': { tls: true },
  'over TLS, with rotation': { tls: true, rotate: true },
  'with rotation and a grace': { rotate: true, grace: 10_000 },
  'with windows on the clock, and revocation': { onTheClock: true, revocationPath: '/oauth/revoke' },
}

it.each(Object.entries(GOOD))(
  'H127 finds every promise kept by a server that keeps the documented API, %s',
  async (_name, server) => {
    const report = await reportOn(server, 'complete')
    expect(brokenIn(report)).toEqual({})
    expect(idsOf(report, 'not testable')).toEqual(['C8'])
    expect(report.promises.map(({ id }) => id)).toEqual([...OUTSIDE.keys()])
  },
)

it.each(FAULTS)('H127 finds a server that $does, and nothing else', async (fault) => {
  const report = await reportOn({ ...fault.server, faults: [fault] }, fault.run ?? 'quick')
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
