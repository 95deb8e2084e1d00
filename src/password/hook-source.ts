import type { Clock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import type { DevicePasswordEvents } from './device-source.ts'
import type { Hook, HookAnswer, HookQuestion } from './hook.ts'
import { fingerprintOf } from './key-derivation.ts'
import { createLoginQueue, type OnEnd } from './login-queue.ts'
import type { PasswordSourceState } from './source.ts'
import type { Replacement } from './sources.ts'
import type { Verified } from './verifier.ts'
import { ALL_EQUAL, type Precedence } from './weighted-turns.ts'

export interface HookPasswordEvents extends DevicePasswordEvents {
  /** The hook gives no fingerprint, so no change of the password ends tokens: C8 does not hold. */
  unfollowed(): void
  /** The hook gave no answer. `isNew`: for another reason than the last question, or the first time. */
  unanswered(reason: string, isNew: boolean): void
  /** The hook answers again. */
  restored(): void
}

/** A wrong password may take the hook seconds, and must not hold up right ones. `wait` in ms. */
const BOUNDS = { inside: 8, waiting: 64, wait: { least: 10_000, most: 10_000 } }

/** How often the hook is asked for its fingerprint (ms). */
const ASK_EVERY = 60_000

const FAULT = { key: 'password.socket', remedy: 'start its program, or correct the path' } as const

/** The fingerprint of a hook that gives none. */
const NONE = ''

/**
 * Verifies passwords by a hook. Its fingerprint stands for the password: another one is a changed password (C8). Only the answer to
 * `{fingerprint: true}` decides. Another fingerprint beside a right password only causes that question, so a late answer about the former
 * password is not taken for a change back.
 *
 * Rejects with `SetupError` if passwords must not be sent to the hook. A hook that does not answer does not end the start: logins fail
 * until it answers, and the tokens of the last run are valid until then.
 */
export async function openHookPassword(
  clock: Pick<Clock, 'after' | 'every' | 'monotonic'>,
  first: Hook,
  events: HookPasswordEvents,
  onBug: (error: unknown) => void,
  precedence: Precedence = ALL_EQUAL,
) {
  const queue = createLoginQueue<Verified>(clock, BOUNDS, precedence)
  let hook = first
  let problem: string | undefined
  let generation = 0
  let closed = false
  let turn: Promise<unknown> = Promise.resolve()
  await hook.ready()
  /** Undefined until the hook has answered. */
  let known = fingerprintIn(await ask({ fingerprint: true }))
  if (known === NONE) events.unfollowed()
  const minutes = clock.every(ASK_EVERY, () => {
    if (known !== NONE || problem !== undefined) void follow().catch(onBug)
  })

  async function ask(question: HookQuestion): Promise<HookAnswer> {
    const asked = hook
    const answer = await asked.ask(question)
    // The answer of a hook that a reload has replaced says nothing about the present one.
    if (asked === hook && !closed) tell(reasonIn(answer))
    return answer
  }

  function tell(failure: string | undefined): void {
    const before = problem
    problem = failure && `password hook ${hook.where}: ${failure}`
    if (problem !== undefined) events.unanswered(problem, problem !== before)
    else if (before !== undefined) events.restored()
  }

  /** Asks for the fingerprint, one question after the other. Returns whether the hook has answered. */
  function follow(): Promise<boolean> {
    const followed = turn.then(async () => {
      const asked = hook
      const fingerprint = fingerprintIn(await ask({ fingerprint: true }))
      return fingerprint !== undefined && asked === hook && adopt(fingerprint)
    })
    turn = followed.catch(() => {})
    return followed
  }

  async function adopt(fingerprint: string): Promise<boolean> {
    if (known === undefined) {
      await events.learned((salt) => fingerprintOf(lineOf(fingerprint, hook), salt))
      known = fingerprint
      if (known === NONE) events.unfollowed()
    } else if (known !== NONE && fingerprint === NONE) {
      // The last password stays valid, as with a file that cannot be read any more.
      tell('it does not give its fingerprint any more')
      return false
    } else if (fingerprint !== known) change(fingerprint)
    return true
  }

  function change(fingerprint: string): void {
    known = fingerprint
    generation += 1
    events.changed()
    if (known === NONE) events.unfollowed()
  }

  async function check(user: string | null, password: string): Promise<Verified> {
    const before = generation
    const unchecked = (): Verified => ({ result: 'unchecked', generation })
    if (known === undefined && !(await follow())) return unchecked()
    const answer = await ask({ user, password })
    if ('failed' in answer) return unchecked()
    if (answer.verdict === 'wrong') return { result: 'wrong', generation: before }
    const { fingerprint = known } = answer
    if (fingerprint !== known && !(await follow())) return unchecked()
    return { result: 'right', generation: before }
  }

  return {
    /**
     * Asks the hook. Logins that wait with the same username and password share one question. If the password changes meanwhile, the result
     * is about an earlier `generation`. The hook gets the bytes of the password as they came. The parameters are as in `Passwords`.
     */
    async verify(password: string, client: string, username?: string, onEnd?: OnEnd): Promise<Verified> {
      const user = username ?? null
      const job = { client, password, against: `hook ${JSON.stringify(user)}` }
      const verified = await queue.enter(job, () => check(user, password), onEnd)
      return verified === 'overloaded' ? { result: verified, generation } : verified
    },
    get generation(): number {
      return generation
    },
    /** Whether a change of the password ends tokens. */
    get follows(): boolean {
      return known !== undefined && known !== NONE
    },
    /** Only the hook knows. */
    has: (_name: string): boolean => true,
    /** A fingerprint of the hook's fingerprint; undefined until the hook has answered. */
    fingerprint: async (salt: Uint8Array): Promise<string | undefined> =>
      known === undefined ? undefined : fingerprintOf(lineOf(known, hook), salt),
    state: (): PasswordSourceState => ({ readable: problem === undefined, reason: problem }),
    /**
     * Puts another hook in the place of this one. The password has changed, unless both give the same fingerprint. Rejects with
     * `SetupError`, and changes nothing, if it does not answer.
     */
    async replace(next: Hook): Promise<Replacement> {
      if (next.where === hook.where) return { swap() {}, discard() {} }
      await next.ready()
      const answer = await next.ask({ fingerprint: true })
      const fingerprint = fingerprintIn(answer)
      if (fingerprint === undefined) throw new SetupError(`${next.where}: ${reasonIn(answer)}`, FAULT)
      return {
        swap() {
          hook.close()
          hook = next
          tell(undefined)
          if (known === undefined) void follow().catch(onBug)
          else if (fingerprint === NONE || fingerprint !== known) change(fingerprint)
        },
        discard: next.close,
      }
    },
    [Symbol.dispose](): void {
      closed = true
      minutes.cancel()
      hook.close()
    },
  }
}

/**
 * The fingerprint in the answer to the question for it; undefined without an answer. A hook that does not know the question may answer
 * `wrong`, because it finds no password in it.
 */
function fingerprintIn(answer: HookAnswer): string | undefined {
  if ('failed' in answer) return undefined
  return answer.verdict === 'right' ? (answer.fingerprint ?? NONE) : NONE
}

function reasonIn(answer: HookAnswer): string | undefined {
  return 'failed' in answer ? answer.failed : undefined
}

/**
 * The text that takes the place of the line of a password file. It has a line end, so no line of a file is equal to it. Without a fingerprint
 * the hook itself stands for the password.
 */
function lineOf(fingerprint: string, { where }: Hook): string {
  return fingerprint === NONE ? `hook without fingerprint\n${where}` : `hook\n${fingerprint}`
}
