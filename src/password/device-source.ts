import { hash, timingSafeEqual } from 'node:crypto'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { PasswordCheck } from '../sign-in/logins.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { Clock } from '../system/clock.ts'
import { fingerprintOf } from './key-derivation.ts'
import { createLoginQueue, type OnEnd } from './login-queue.ts'
import type { PasswordSourceState } from './source.ts'
import type { Verification, Verified } from './verifier.ts'
import { ALL_EQUAL, type Precedence } from './weighted-turns.ts'

/** The device could not be reached, so the password was not checked. The client must not hear that its password is wrong. */
type Unavailable = { readonly unavailable: UpstreamFailure }

export interface DevicePasswordEvents {
  /** A different password is valid from now on, or none is known: revoke every token of the former one (C8). */
  changed(): void
  /** The first right password since the start. Revoke the tokens of any other one: the source adopts this one when the promise resolves. */
  learned(fingerprint: (salt: Uint8Array) => Promise<string>): Promise<void>
}

type RightPassword = Extract<PasswordCheck, { readonly kind: 'right' }>

export type DeviceSignIn = Pick<SignIn, 'check' | 'onRefused'>

/** The password of the device where no file has it: verified by a login at the device. */
export type DevicePassword = ReturnType<typeof createDevicePassword>

/** One sign-in at a time: the device is slow, and a login may end the session of the previous one. `wait` in ms. */
const BOUNDS = { inside: 1, waiting: 64, wait: { least: 10_000, most: 10_000 } }

/**
 * Keeps the last right password in plain text, because the sign-in needs it, and in memory only. After a restart the password is unknown,
 * so the sidecar cannot sign in: restored tokens are valid, but their requests reach the device without credentials until the first login.
 * If that login has a different password, the restored tokens are revoked before it gets its own.
 */
export function createDevicePassword(
  clock: Pick<Clock, 'after' | 'monotonic'>,
  signIn: DeviceSignIn,
  events: DevicePasswordEvents,
  precedence: Precedence = ALL_EQUAL,
) {
  const queue = createLoginQueue<Verified | Unavailable>(clock, BOUNDS, precedence)
  let known: string | undefined
  let problem: string | undefined
  let generation = 0

  function forget(): void {
    known = undefined
    generation += 1
    events.changed()
  }

  signIn.onRefused(() => {
    if (known !== undefined) forget()
  })

  async function checkAtDevice(password: string): Promise<PasswordCheck> {
    const checked = await signIn.check(password)
    problem =
      checked.kind === 'failed' ? `the device could not check the password (${checked.failure})` : undefined
    return checked
  }

  async function check(password: string): Promise<Verification | Unavailable> {
    const checked = await checkAtDevice(password)
    if (checked.kind === 'failed') return { unavailable: checked.failure }
    if (checked.kind === 'stopping') return 'overloaded'
    const isKnown = known !== undefined && timingSafeEqual(digestOf(password), digestOf(known))
    if (checked.kind === 'wrong') {
      // The password has changed or the account is locked: the sidecar cannot distinguish the two.
      if (isKnown) forget()
      return 'wrong'
    }
    if (known === undefined) await events.learned((salt) => fingerprintOf(password, salt))
    else if (!isKnown) return acceptOther(password, known, checked)
    return accept(password, checked.adopt)
  }

  /**
   * A second right password is a change only if the device now refuses the first: firmware that ignores case or truncates
   * passwords accepts several.
   */
  async function acceptOther(
    password: string,
    before: string,
    { adopt, discard }: RightPassword,
  ): Promise<Verification | Unavailable> {
    const old = await checkAtDevice(before)
    if (old.kind !== 'wrong') discard()
    if (old.kind === 'failed') return { unavailable: old.failure }
    if (old.kind === 'stopping') return 'overloaded'
    if (old.kind === 'right') return accept(before, old.adopt)
    accept(password, adopt)
    events.changed()
    return 'right'
  }

  function accept(password: string, adopt: () => void): 'right' {
    if (password !== known) generation += 1
    known = password
    adopt()
    return 'right'
  }

  return {
    /**
     * Verifies a password by a sign-in at the device. Logins that wait with the same password share one sign-in. If a different password
     * than before is right, calls `changed` before it returns `right`. The parameters are as in `Passwords`, but the username is ignored:
     * Postern knows one account of the device. The device gets the bytes of the password as they came.
     */
    async verify(
      password: string,
      client: string,
      _username?: string,
      onEnd?: OnEnd,
    ): Promise<Verified | Unavailable> {
      const signInOnce = async (): Promise<Verified | Unavailable> => {
        const result = await check(password)
        return typeof result === 'string' ? { result, generation } : result
      }
      const verified = await queue.enter({ client, password, against: 'device' }, signInOnce, onEnd)
      return verified === 'overloaded' ? { result: verified, generation } : verified
    },
    get generation(): number {
      return generation
    },
    /** Whether a change of the password ends tokens before the next login: no, the device does not tell. */
    follows: false as boolean,
    /** Whether the password of the device is known. */
    has: (_name: string): boolean => known !== undefined,
    /**
     * The fingerprint of the known password; undefined while none is known, as after each start. A file with the same password in plain
     * text has the same fingerprint, so a change of the source from such a file to the device keeps the tokens.
     */
    fingerprint: async (salt: Uint8Array): Promise<string | undefined> =>
      known === undefined ? undefined : fingerprintOf(known, salt),
    state: (): PasswordSourceState => ({ readable: problem === undefined, reason: problem }),
    [Symbol.dispose](): void {},
  }
}

function digestOf(password: string): Buffer {
  return hash('sha256', password, 'buffer')
}
