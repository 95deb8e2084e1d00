import { expect, it } from 'vitest'
import { systemClock } from '../../src/system/clock.ts'
import { type Time, timeOn } from '../../src/verify/conversation.ts'
import type { VerifyOptions } from '../../src/verify/options.ts'
import type { Report } from '../../src/verify/verdict.ts'
import { needs } from '../support/tools.ts'
import { brokenIn, idsOf, movedTime, runOptions, runVerify } from './a-run.ts'
import type { Breaks } from './faults/fault.ts'
import {
  DEMANDING_EXPRESS,
  EXPRESS,
  FASTIFY,
  NGINX,
  type RealServerRow,
  ROTATING_EXPRESS,
} from './real/rows.ts'

async function reportOn(
  { start }: Pick<RealServerRow, 'start'>,
  changes: Partial<VerifyOptions>,
  // Each server has a time of its own, and so has the run.
  time: Time = timeOn(systemClock),
): Promise<Report> {
  const { url, password, path } = await start()
  return (await runVerify(runOptions(url, password, { path, ...changes }), time)).report
}

function expectFound(report: Report, breaks: Breaks): void {
  expect(idsOf(report, 'broken'), JSON.stringify(brokenIn(report))).toEqual(Object.keys(breaks))
  for (const { id, departures } of report.promises) {
    const reason = breaks[id]
    if (reason !== undefined) expect(departures.map(({ came }) => came).join('\n'), id).toMatch(reason)
  }
}

it.each([EXPRESS, DEMANDING_EXPRESS, FASTIFY])(
  'H127 finds what $name breaks, and nothing else',
  async (row) => {
    expectFound(await reportOn(row, { quick: true }), row.breaks)
  },
)

it('H127 finds that a server with rotation revokes nothing when a refresh token is used twice', async () => {
  // The server keeps its own time: none of its answers depends on the wait.
  expectFound(await reportOn(ROTATING_EXPRESS, { only: ['C6'] }, movedTime()), ROTATING_EXPRESS.breaks)
})

it('H127 finds what each response of nginx lacks without a wait', async () => {
  needs('nginx')
  expectFound(await reportOn(NGINX, { limits: NGINX.limits, quick: true }), NGINX.breaks)
})
