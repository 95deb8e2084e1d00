import { type Answer, member } from './answer.ts'
import { type Question, tokenRequest } from './question.ts'
import type { Stage } from './stage.ts'

/** Whether a used-up window is waited for. */
type Patience = 'waiting' | 'without waiting'

const LEFT = 'the tokens of the run are left, and expire by themselves'

/**
 * Revokes one login by a token of it (RFC 7009). After a response that says the server does not take revocations, later calls do
 * nothing. Resolves to the reason if the server did not answer with 200. Never rejects because the run was stopped.
 */
export async function revoke(
  stage: Stage,
  token: string,
  patience: Patience = 'waiting',
): Promise<string | undefined> {
  const { revocationPath: path } = stage.options
  if (path === undefined) return 'revocation is off'
  if (stage.noRevocation !== undefined) return stage.noRevocation
  const answer = await askToRevoke(
    stage,
    tokenRequest([['token', token]], 'with a token', { path }),
    patience,
  )
  if (answer.status === 200) {
    stage.revoked.add(token)
    return undefined
  }
  if (answer.status === 429)
    return `${path}: 429 Too Many Requests: revoke the tokens yourself, or wait until they expire`
  const error = member(answer, 'error')
  const came = answer.failure ?? `${answer.status}${typeof error === 'string' ? ` ${error}` : ''}`
  stage.noRevocation = `${path}: ${came}: ${LEFT}`
  return stage.noRevocation
}

/** It does not heed the signal of a run that was stopped, which has tokens to revoke, too. But then it does not wait. */
async function askToRevoke(stage: Stage, question: Question, patience: Patience): Promise<Answer> {
  const ask = (): Promise<Answer> => stage.sendAnyway({ ...question, oddity: 'respelled' })
  const answer = await ask()
  if (answer.status !== 429 || stage.signal.aborted || patience === 'without waiting') return answer
  try {
    await stage.waitForWindow('oauth', 'to revoke the tokens')
  } catch (error) {
    if (stage.signal.aborted) return answer
    throw error
  }
  return ask()
}

/** Revokes each login of a run that is not revoked yet, by its newest token, and says what became of the tokens. */
export async function revokeAll(stage: Stage, patience: Patience = 'waiting'): Promise<string> {
  const { logins } = stage.records
  if (logins.size === 0) return 'the run got no tokens'
  if (stage.options.revocationPath === undefined) return `not revoked: ${LEFT}`
  for (const token of [...logins].filter((token) => !stage.revoked.has(token))) {
    const problem = await revoke(stage, token, patience)
    if (problem !== undefined) return problem
  }
  return 'the server answered 200 to each revocation'
}
