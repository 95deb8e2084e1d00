import { type Answer, member } from './answer.ts'
import { type Question, tokenRequest } from './question.ts'
import type { Stage } from './stage.ts'

const LEFT = 'they expire by themselves, within a week'

/**
 * Revokes one login by a token of it (RFC 7009). The first call of a run tells whether the server offers that; if not, later ones
 * do nothing. Returns whether the token is revoked.
 */
export async function revoke(stage: Stage, token: string): Promise<boolean> {
  const { revocationPath: path } = stage.options
  if (path === undefined || stage.noRevocation !== undefined) return false
  const answer = await askToRevoke(stage, tokenRequest([['token', token]], 'with a token', { path }))
  if (answer.status === 200) {
    stage.revoked.add(token)
    return true
  }
  const problem = answer.failure ?? `${answer.status} ${member(answer, 'error') ?? ''}`.trim()
  stage.noRevocation = `${path} revokes no tokens (${problem})`
  return false
}

/** It does not heed the signal of a run that was broken off, which has tokens to revoke, too. But then it does not wait. */
async function askToRevoke(stage: Stage, question: Question): Promise<Answer> {
  const answer = await stage.sendAnyway({ ...question, oddity: 'respelled' })
  if (answer.status !== 429 || stage.signal.aborted) return answer
  await stage.waitForWindow('oauth', 'to revoke the tokens')
  return stage.sendAnyway({ ...question, oddity: 'respelled' })
}

/** Revokes all logins of a run that are not revoked yet, and says what became of them. */
export async function revokeAll(stage: Stage): Promise<string> {
  const { refreshTokens } = stage.records
  if (refreshTokens.size === 0) return 'the run got no tokens'
  const tokens = [...refreshTokens].filter((token) => !stage.revoked.has(token))
  if (stage.options.revocationPath === undefined) return `the tokens of the run are not revoked; ${LEFT}`
  for (const token of tokens) {
    if (!(await revoke(stage, token))) return `${stage.noRevocation}: the tokens of the run are left; ${LEFT}`
  }
  return 'all tokens of the run are revoked'
}
