import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { runOptions, runVerify } from './a-run.ts'
import { startDocumentedServer } from './documented-server.ts'
import type { Fault } from './fault.ts'

const LIMIT = { requests: 20, seconds: 3 }
const WINDOW = { requests: 20, window: 3 }

/** 10 connections get 25 refusals in a second. */
const SLOW: Fault = {
  name: 'slow-refusals',
  sentence: 'a refusal takes long',
  breaks: {},
  async exchange(request, next) {
    const reply = await next(request)
    if (reply.status === 429) await pause(380)
    return reply
  },
}

it.concurrent('H125 a flood that brings few refusals goes on until it has brought enough to judge', async () => {
  const limits = { api: LIMIT, oauth: LIMIT }
  const { url, password } = await startDocumentedServer({ faults: [SLOW], limits })
  const options = runOptions(url, password, { path: '/', limits: { api: WINDOW, oauth: WINDOW } })
  const { report } = await runVerify({ ...options, only: ['H125'] })
  expect(report.promises).toMatchObject([{ id: 'H125', result: 'kept', departures: [] }])
  expect(report.floods).toHaveLength(2)
  for (const { seconds, refusals } of report.floods) {
    expect(seconds).toBeLessThan(options.flood.seconds + 20)
    expect(refusals.responses).toBeGreaterThanOrEqual(100)
  }
})

/** Refuses with a status that the documented API does not have for it. */
const UNAVAILABLE: Fault = {
  name: 'unavailable',
  sentence: 'a request past the limit gets 503',
  breaks: {},
  async exchange(request, next) {
    const reply = await next(request)
    return reply.status === 429 ? { ...reply, status: 503 } : reply
  },
}

it.concurrent('H125 a flood that is refused with another status than 429 is not longer for that', async () => {
  const limits = { api: LIMIT, oauth: LIMIT }
  const { url, password } = await startDocumentedServer({ faults: [UNAVAILABLE], limits })
  const options = runOptions(url, password, { path: '/', limits: { api: WINDOW, oauth: WINDOW } })
  const { report } = await runVerify({ ...options, only: ['H125'] })
  expect(report.promises).toMatchObject([{ id: 'H125', result: 'broken' }])
  for (const { seconds } of report.floods) expect(seconds).toBeLessThan(options.flood.seconds + 10)
})
