import { expect, it } from 'vitest'
import { type Ask, createReplicatedRuns } from '../../src/fleet/replicated-runs.ts'
import type { StoreReply, StoreUnavailable } from '../../src/fleet/shared-store.ts'
import { stillClock } from '../support/clock.ts'
import { ADD, failureOf, KEY } from './opened.ts'

interface Question {
  readonly name: string
  readonly timeout: number
  readonly reply: (reply: StoreReply) => void
}

/** Runs on a connection whose replies the test gives. */
function startRuns() {
  const questions: Question[] = []
  const clock = stillClock()
  const ask: Ask = (_operation, [name = ''], timeout) =>
    new Promise((resolve) => questions.push({ name, timeout, reply: resolve }))
  const unconfirmed: StoreUnavailable[] = []
  const run = createReplicatedRuns(ask, {
    replicas: 1,
    timeout: 1_000,
    clock,
    unconfirmed: (error) => unconfirmed.push(error),
  })
  /** The next question to the server; fails if there is none within a few turns. */
  async function next(name: string): Promise<Question> {
    await expect.poll(() => questions[0]?.name).toBe(name)
    const [question] = questions.splice(0, 1)
    if (question === undefined) throw new Error('no question')
    return question
  }
  return { add: () => run(ADD, [KEY], ['1']), next, questions, unconfirmed, clock }
}

it('H136 scripts that no replica confirms are answered and reported, and those that came meanwhile follow', async () => {
  const { add, next, unconfirmed } = startRuns()
  const first = add()
  ;(await next('EVAL')).reply(1)
  const waiting = await next('WAIT')
  const second = add()
  waiting.reply(0)
  expect(await first).toBe(1)
  ;(await next('EVAL')).reply(2)
  ;(await next('WAIT')).reply(1)
  expect(await second).toBe(2)
  expect(unconfirmed).toHaveLength(1)
})

it('H135 a script that has waited too long fails without a question, whose timer would end the connection', async () => {
  const { add, next, questions, clock } = startRuns()
  const first = add()
  ;(await next('EVAL')).reply(1)
  const waiting = await next('WAIT')
  const late = failureOf(add())
  await clock.advance(501)
  waiting.reply(1)
  expect(await first).toBe(1)
  expect(await late).toBe('timeout')
  expect(questions).toEqual([])
})
