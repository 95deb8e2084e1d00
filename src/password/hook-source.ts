import type { Clock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import type { DevicePasswordEvents } from './device-source.ts'
import type { Hook, HookAnswer, HookQuestion } from './hook.ts'
import { fingerprintOf } from './key-derivation.ts'
import { createLoginQueue, type OnEnd } from './login-queue.ts'
import type { PasswordSourceState } from './source.ts'
import type { Replacement } from './sources.ts'
import type { Verification, Verified } from './verifier.ts'
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
 * `silent`: the hook gave no answer. `missing`: it gives no fingerprint any more. `other`: beside right passwords it gives another
 * fingerprint than to the question for it.
 */
interface Trouble {
  readonly kind: 'silent' | 'missing' | 'other'
  readonly reason: string
}

/**
 * Verifies passwords by a hook, which gets the password of a login once: it may be a one-time password. The fingerprint of the hook stands
 * for the password: another one is a changed password (C8). Only the answer to `{fingerprint: true}` decides about it. Another fingerprint
 * beside a right password only causes that question, so a late answer about the former password is not taken for a change back. A login
 * gets tokens if the fingerprint that came with its answer is then the present one.
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
  let trouble: Trouble | undefined
  let generation = 0
  let closed = false
  let turn: Promise<unknown> = Promise.resolve()
  /** The next question for the fingerprint, until it begins. */
  let next: Promise<boolean> | undefined
  await hook.ready()
  /** Undefined until the hook has answered. */
  let known = fingerprintIn(await ask({ fingerprint: true }))
  if (known === NONE) events.unfollowed()
  const minutes = clock.every(ASK_EVERY, () => {
    if (known !== NONE || trouble !== undefined) void follow().catch(onBug)
  })

  async function ask(question: HookQuestion): Promise<HookAnswer> {
    const asked = hook
    const answer = await asked.ask(question)
    // The answer of a hook that a reload has replaced says nothing about the present one.
    if (asked !== hook || closed) return answer
    const reason = reasonIn(answer)
    if (reason === undefined) end('silent')
    else tell('silent', reason)
    return answer
  }

  function tell(kind: Trouble['kind'], reason: string): void {
    const before = trouble
    trouble = { kind, reason: `password hook ${hook.where}: ${reason}` }
    events.unanswered(trouble.reason, trouble.reason !== before?.reason)
  }

  /** A trouble of this kind is over. Another one goes on. */
  function end(kind = trouble?.kind): void {
    if (trouble === undefined || trouble.kind !== kind) return
    trouble = undefined
    events.restored()
  }

  /**
   * Asks for the fingerprint, one question after the other: calls share the question that has not begun. Returns whether the hook has
   * answered.
   */
  function follow(): Promise<boolean> {
    next ??= turn.then(async () => {
      next = undefined
      const asked = hook
      const fingerprint = fingerprintIn(await ask({ fingerprint: true }))
      return fingerprint !== undefined && asked === hook && adopt(fingerprint)
    })
    turn = next.catch(() => {})
    return next
  }

  async function adopt(fingerprint: string): Promise<boolean> {
    if (known === undefined) {
      await events.learned((salt) => fingerprintOf(lineOf(fingerprint, hook), salt))
      known = fingerprint
      if (known === NONE) events.unfollowed()
    } else if (known !== NONE && fingerprint === NONE) {
      // The last password stays valid, as with a file that cannot be read any more.
      tell('missing', 'it does not give its fingerprint any more')
      return false
    } else if (fingerprint !== known) change(fingerprint)
    end('missing')
    return true
  }

  function change(fingerprint: string): void {
    known = fingerprint
    generation += 1
    end('other')
    events.changed()
    if (known === NONE) events.unfollowed()
  }

  /** What stands for the password at present; undefined until the hook has answered. */
  function present(): string | undefined {
    return known === undefined ? undefined : lineOf(known, hook)
  }

  async function check(user: string | null, password: string): Promise<Verification> {
    if (known === undefined && !(await follow())) return 'unchecked'
    const before = present()
    const answer = await ask({ user, password })
    if ('failed' in answer) return 'unchecked'
    if (answer.verdict === 'wrong') return 'wrong'
    const { fingerprint } = answer
    const brought = fingerprint === undefined ? before : lineOf(fingerprint, hook)
    if (brought !== present() && !(await follow())) return 'unchecked'
    if (brought === present()) {
      end('other')
      return 'right'
    }
    // The answer is about an earlier password, or one of a replaced hook.
    if (before !== present()) return 'unchecked'
    if (known === NONE) return 'right'
    tell('other', 'it gives another fingerprint beside a right password than to the question for it')
    return 'unchecked'
  }

  return {
    /**
     * Asks the hook, once. Logins that wait with the same username and password share one question. The hook gets the bytes of the password
     * as they came. The parameters are as in `Passwords`.
     */
    async verify(password: string, client: string, username?: string, onEnd?: OnEnd): Promise<Verified> {
      const user = username ?? null
      const job = { client, password, against: `hook ${JSON.stringify(user)}` }
      const verify = async (): Promise<Verified> => {
        const result = await check(user, password)
        return { result, generation, once: true }
      }
      const verified = await queue.enter(job, verify, onEnd)
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
    state: (): PasswordSourceState => ({ readable: trouble === undefined, reason: trouble?.reason }),
    /**
     * Puts another hook in the place of this one. The password has changed, unless both give the same fingerprint. Rejects with
     * `SetupError`, and changes nothing, if it does not answer.
     */
    async replace(other: Hook): Promise<Replacement> {
      if (other.where === hook.where) return { swap() {}, discard() {} }
      await other.ready()
      const answer = await other.ask({ fingerprint: true })
      const fingerprint = fingerprintIn(answer)
      if (fingerprint === undefined) throw new SetupError(`${other.where}: ${reasonIn(answer)}`, FAULT)
      return {
        swap() {
          hook.close()
          hook = other
          end()
          if (known === undefined) void follow().catch(onBug)
          else if (fingerprint === NONE || fingerprint !== known) change(fingerprint)
        },
        discard: other.close,
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
