import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { Report } from '../../src/verify/verdict.ts'
import { runOptions, runVerify } from './a-run.ts'
import { startDocumentedServer } from './documented-server.ts'
import type { Reply } from './exchange.ts'

const LIMIT = { requests: 20, seconds: 3 }
const WINDOW = { requests: 20, window: 3 }

/** The report on H125 of a server whose 429s are made so, and the length of a flood (s). */
async function floodOf(refuse: (refusal: Reply) => Promise<Reply>): Promise<Report & { length: number }> {
  const { url, password } = await startDocumentedServer({
    limits: { api: LIMIT, oauth: LIMIT },
    faults: [
      {
        name: 'other-refusals',
        sentence: 'a refusal is another',
        breaks: {},
        async exchange(request, next) {
          const reply = await next(request)
          return reply.status === 429 ? refuse(reply) : reply
        },
      },
    ],
  })
  const options = runOptions(url, password, { path: '/', limits: { api: WINDOW, oauth: WINDOW } })
  const { report } = await runVerify({ ...options, only: ['H125'] })
  return { ...report, length: options.flood.seconds }
}

it.concurrent('H125 a flood that brings few refusals goes on until it has brought enough to judge', async () => {
  // 10 connections get 25 refusals in a second.
  const { promises, floods, length } = await floodOf((refusal) => pause(380, refusal))
  expect(promises).toMatchObject([{ id: 'H125', result: 'kept', departures: [] }])
  expect(floods).toHaveLength(2)
  for (const { seconds, refusals } of floods) {
    expect(seconds).toBeLessThan(length + 20)
    expect(refusals.responses).toBeGreaterThanOrEqual(100)
  }
})

it.concurrent('H125 a flood that is refused with another status than 429 is not longer for that', async () => {
  const { promises, floods, length } = await floodOf(async (refusal) => ({ ...refusal, status: 503 }))
  expect(promises).toMatchObject([{ id: 'H125', result: 'broken' }])
  for (const { seconds } of floods) expect(seconds).toBeLessThan(length + 10)
})
