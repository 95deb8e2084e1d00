import { beforeAll, describe, expect, it } from 'vitest'
import { DOCUMENTED_LIMITS, type VerifyOptions } from '../../src/verify/options.ts'
import type { OutsideId } from '../../src/verify/promises.ts'
import type { Report } from '../../src/verify/verdict.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { brokenIn, idsOf, inTurn, runOptions, runVerify, WITHOUT_FLOODS } from './a-run.ts'
import { startExpress } from './real/express.ts'
import { startFastify } from './real/fastify.ts'
import { EXPRESS, FASTIFY, NGINX, type RealServerRow, ROTATING_EXPRESS } from './real/known-departures.ts'
import type { RealServer } from './real/real-server.ts'

/** A server, and how it is judged. */
interface Case {
  start(): Promise<RealServer>
  readonly changes: Partial<VerifyOptions>
}

const ofRow = ({ start, limits }: RealServerRow, changes: Partial<VerifyOptions> = {}): Case => ({
  start: () => start(limits),
  changes: { limits, ...changes },
})

const documented = { limits: DOCUMENTED_LIMITS }

const CASES: Readonly<Record<string, Case>> = {
  [EXPRESS.name]: ofRow(EXPRESS),
  [FASTIFY.name]: ofRow(FASTIFY),
  // It is 12 s longer (C6), and the floods are those of the server above.
  [ROTATING_EXPRESS.name]: ofRow(ROTATING_EXPRESS, { only: WITHOUT_FLOODS }),
  'a client_id': { start: () => startExpress({ clientRequired: true }), changes: documented },
  'one promise': { start: () => startFastify(), changes: { ...documented, only: ['C1'] } },
  ...(isInstalled('nginx')
    ? { 'nginx, quickly': ofRow({ ...NGINX, limits: DOCUMENTED_LIMITS }, { quick: true }) }
    : {}),
}

describe('postern verify', () => {
  let reports: ReadonlyMap<string, Promise<Report>>
  const report = (name: string): Promise<Report> => reports.get(name) ?? expect.unreachable()
  const brokenBy = async (name: string): Promise<OutsideId[]> => idsOf(await report(name), 'broken')

  beforeAll(async () => {
    const names = Object.keys(CASES)
    const servers = new Map(
      await Promise.all(names.map(async (name) => [name, await CASES[name]?.start()] as const)),
    )
    reports = inTurn(names, names.length, async (name) => {
      const { url, password, path } = servers.get(name) ?? expect.unreachable()
      return (await runVerify(runOptions(url, password, { path, ...CASES[name]?.changes }))).report
    })
  })

  it.each([EXPRESS, ROTATING_EXPRESS, FASTIFY])(
    'H127 finds what $name breaks, and nothing else',
    async ({ name, departures }) => {
      const expected = departures.map(({ promise }) => promise).sort()
      expect((await brokenBy(name)).sort(), JSON.stringify(brokenIn(await report(name)))).toEqual(expected)
    },
  )

  it('H127 finds what each response of nginx lacks without a wait', async () => {
    needs('nginx')
    expect(await brokenBy('nginx, quickly')).toEqual(['C15', 'C16'])
  })

  it('H127 finds only that a login fails, where it needs a client_id', async () => {
    expect(await brokenBy('a client_id')).toEqual(['C4'])
  })

  it('quotes no body in what it found', async () => {
    const [spelling] = (await report('one promise')).promises
    expect(spelling?.departures.map(({ came }) => came)).toEqual([
      expect.stringMatching(/^200 \(application\/json, \d+ bytes\)$/),
    ])
  })
})
