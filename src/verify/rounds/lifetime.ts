import type { Answer } from '../answer.ts'
import { apiRequest, type Question } from '../question.ts'
import type { Stage } from '../stage.ts'
import type { Departure } from '../verdict.ts'
import { conclude, type Round, untested } from './round.ts'

/** The lifetime of an access token (device API §5.6), in seconds. */
const LIFETIME = 3600

/** C7: the stated lifetime, and a late use of the first token, which `recovery` has made if that round ran. */
export const lifetime: Round = {
  promises: ['C7'],
  cost: () => ({ requests: 1, seconds: 1 }),
  async run(stage) {
    const { firstLogin, options } = stage
    if (firstLogin === undefined) return untested(['C7'], 'no login gave tokens')
    const stated = lifetimeDeparture('POST /oauth/token with the password', firstLogin.expiresIn)
    if (options.quick) return conclude('C7', [stated], 'only expires_in was read, because of --quick')
    const { lateUse } = stage
    const { question, answer } =
      lateUse === undefined || lateUse.answer.status === 429 ? await useNow(stage) : lateUse
    const used =
      answer.status === 401
        ? stage.departure(question, answer, 'no 401: the token is still valid', 'device API §5.6')
        : undefined
    return conclude('C7', [stated, used], 'that tokens expire would take an hour and a week to see')
  },
}

/** What is wrong with the lifetime that a response states. Whether it is stated at all is a matter of C4. */
export function lifetimeDeparture(sent: string, expiresIn: unknown): Departure | undefined {
  return expiresIn === LIFETIME || !Number.isInteger(expiresIn)
    ? undefined
    : { sent, came: `expires_in: ${expiresIn}`, wanted: String(LIFETIME), clause: 'device API §5.6' }
}

/** A request with the token of the first login, however often the login was refreshed since. */
export function useOfFirstToken({ options, firstLogin, clock }: Stage): Question {
  const { accessToken = '', at = 0 } = firstLogin ?? {}
  const age = Math.round((clock.wall() - at) / 1000)
  return apiRequest(options.path, accessToken, `with the token of the first login, ${age} s old`)
}

async function useNow(stage: Stage): Promise<{ readonly question: Question; readonly answer: Answer }> {
  const question = useOfFirstToken(stage)
  return { question, answer: await stage.ask(question) }
}
