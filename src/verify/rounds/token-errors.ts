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
  cost: () => ({ logins: 4, wrongPasswords: 3, requests: 12, seconds: 1 }),
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
    malformed.push(await loginByGet(stage, wrong))
    return [...conclude('C2', malformed), ...conclude('C5', grants)]
  },
}

/**
 * A login whose form is the query of a GET, which an access log may keep. The password is wrong, so that no log gets the right one:
 * a server that looks at it refuses it in another way than a GET without a form. C19 reads the statuses of both.
 */
async function loginByGet(stage: Stage, wrong: string): Promise<Departure | undefined> {
  const bare = await stage.ask(GET_TOKEN)
  const question: Question = {
    ...GET_TOKEN,
    path: `${GET_TOKEN.path}?${new URLSearchParams(passwordForm(wrong))}`,
    what: 'GET /oauth/token with a wrong password in the query',
  }
  const answer = await stage.ask(question)
  const [before, after] = [bare, answer].map((each) => `${each.status} ${member(each, 'error')}`)
  const looked = member(answer, 'error') === 'invalid_grant' || answer.status === 401 || answer.status === 200
  return looked && before !== after
    ? stage.departure(
        question,
        answer,
        `${before}, as without a query: a login is a POST`,
        'RFC 6749 §2.3.1 and §3.2',
      )
    : undefined
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
