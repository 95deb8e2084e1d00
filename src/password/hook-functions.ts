import type { Clock } from '../system/clock.ts'
import { codeOf } from '../system/setup-error.ts'
import {
  HOOK_DEADLINE,
  type Hook,
  type HookAnswer,
  type HookQuestion,
  type PasswordFunctions,
} from './hook.ts'

/** The hook of these functions. */
export function createHookFunctions(functions: PasswordFunctions, clock: Pick<Clock, 'after'>): Hook {
  return {
    where: 'verify',
    async ready() {},
    ask: (question) => withinDeadline(answerOf(functions, question), clock),
    close() {},
  }
}

async function answerOf(
  { verify, fingerprint = () => '' }: PasswordFunctions,
  question: HookQuestion,
): Promise<HookAnswer> {
  try {
    // The fingerprint comes first: if the password changes between the two calls, new tokens end too early, and never too late.
    const print = await fingerprint()
    const verdict = 'fingerprint' in question || (await verify(question.user ?? undefined, question.password))
    if (typeof print !== 'string' || print.length > 512 || typeof verdict !== 'boolean')
      return { failed: 'it gave a value of another type than it may' }
    return verdict ? { verdict: 'right', fingerprint: print || undefined } : { verdict: 'wrong' }
  } catch (error) {
    // The message may quote the password.
    return { failed: `it threw an error${codeOf(error) && ` (${codeOf(error)})`}` }
  }
}

function withinDeadline(answer: Promise<HookAnswer>, clock: Pick<Clock, 'after'>): Promise<HookAnswer> {
  return new Promise((resolve) => {
    const timer = clock.after(HOOK_DEADLINE, () =>
      resolve({ failed: `it did not give an answer within ${HOOK_DEADLINE / 1000} s` }),
    )
    void answer.then((given) => {
      timer.cancel()
      resolve(given)
    })
  })
}
