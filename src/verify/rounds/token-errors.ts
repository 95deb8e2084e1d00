import { randomUUID } from 'node:crypto'
import { type Answer, member } from '../answer.ts'
import {
  GET_TOKEN,
  passwordForm,
  type Question,
  refreshGrant,
  tokenRequest,
  UNSUPPORTED_GRANT,
} from '../question.ts'
import type { Stage } from '../stage.ts'
import type { Departure } from '../verdict.ts'
import { conclude, type Round, untested } from './round.ts'

/** C2 and C5: requests for tokens that have to be refused. */
export const tokenErrors: Round = {
  promises: ['C2', 'C5', 'C9', 'C19'],
  cost: () => ({ logins: 4, wrongPasswords: 1, requests: 11, seconds: 1 }),
  async run(stage) {
    const [grant] = stage.grants
    if (grant === undefined) return untested(['C2', 'C5', 'C9', 'C19'], 'no login gave tokens')
    const malformed: (Departure | undefined)[] = []
    for (const question of malformedForms(stage.options.password))
      malformed.push(await refusal(stage, question, 'invalid_request', 'RFC 6749 §5.2'))

    const wrong = `wrong-${randomUUID()}`
    const unknown = `unknown-${randomUUID()}`
    for (const marker of [wrong, unknown, grant.accessToken]) stage.records.addMarker(marker)
    const grants: (Departure | undefined)[] = [
      await refusal(
        stage,
        refused(tokenRequest(passwordForm(wrong), 'with a wrong password')),
        'invalid_grant',
      ),
      await refusal(stage, refused(refreshGrant(unknown, 'with an unknown refresh token')), 'invalid_grant'),
      await refusal(
        stage,
        refused(refreshGrant(grant.accessToken, 'with an access token as refresh token')),
        'invalid_grant',
      ),
      await refusal(stage, UNSUPPORTED_GRANT, 'unsupported_grant_type'),
    ]
    // C19 reads the status of the response.
    await stage.ask(GET_TOKEN)
    return [...conclude('C2', malformed), ...conclude('C5', grants)]
  },
}

function refused(question: Question): Question {
  return { ...question, refused: true }
}

function malformedForms(password: string): Question[] {
  const form = passwordForm(password)
  return [
    tokenRequest(form.slice(1), 'without grant_type'),
    tokenRequest(form.slice(0, 1), 'without password'),
    tokenRequest(passwordForm(''), 'with an empty password'),
    tokenRequest([...form, ...form.slice(0, 1)], 'with grant_type twice'),
    tokenRequest([...form, ...form.slice(1)], 'with the password twice'),
    {
      ...tokenRequest([], 'with the password, as JSON', { fields: ['Content-Type', 'application/json'] }),
      body: JSON.stringify(Object.fromEntries(form)),
    },
  ].map(refused)
}

async function refusal(
  stage: Stage,
  question: Question,
  error: string,
  clause = 'RFC 6749 §5.2',
): Promise<Departure | undefined> {
  const answer = await stage.ask(question)
  return isRefusal(answer, error) ? undefined : stage.departure(question, answer, `400 ${error}`, clause)
}

function isRefusal(answer: Answer, error: string): boolean {
  return answer.status === 400 && member(answer, 'error') === error
}
