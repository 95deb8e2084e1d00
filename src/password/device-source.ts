import { createHash, timingSafeEqual } from 'node:crypto'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { Checked, SignIn } from '../sign-in/sign-in.ts'
import { createBoundedQueue } from '../system/bounded-queue.ts'
import { fingerprintOf } from './key-derivation.ts'
import type { Verdict } from './verifier.ts'

/** The device could not be asked: nothing is known about the password, and no client may be told that it is wrong. */
interface Unavailable {
  readonly unavailable: UpstreamFailure
}

export interface DevicePasswordEvents {
  /** Another password holds from now on, or none is known to: every token given for the earlier one must go (C8). */
  changed(): void
  /** A password is known where none was, neither from this run nor from the one before: its fingerprint can be kept. */
  learned(): void
}

/** What an earlier run kept of the password that its tokens were given for. */
export interface RememberedPassword {
  readonly salt: Uint8Array
  readonly fingerprint: string
}

export interface DevicePasswordDependencies {
  readonly signIn: Pick<SignIn, 'check' | 'onRefused'>
  readonly events: DevicePasswordEvents
  readonly remembered: RememberedPassword | undefined
}

/** The device password as only the device itself knows it: tried by signing in there. */
export interface DevicePassword {
  /** At the device, every time. Before `right` is said of another password than before, `changed` was called. */
  verify(password: string): Promise<Verdict | Unavailable>
  /** As that of a file with the password in plain text, so that moving from one keeps its tokens; `undefined` while no password is known, which is so after every start. */
  fingerprint(salt: Uint8Array): Promise<string | undefined>
  state(): { readonly readable: boolean; readonly reason?: string }
  close(): void
}

/** One at a time: the device is slow, and a login there may end the one before. */
const BOUNDS = { inside: 1, waiting: 64, patience: 10_000 }

/**
 * The password that was last right is kept in memory only; signing in needs it as it is. After a restart it is not
 * known, and the sidecar cannot sign in: tokens of the run before are good again, but what they ask for reaches the
 * device without credentials, until the first grant. If its password is not the one of the run before, those tokens
 * are revoked before it gets its own: nobody gains by the delay.
 */
export function createDevicePassword({
  signIn,
  events,
  remembered,
}: DevicePasswordDependencies): DevicePassword {
  const queue = createBoundedQueue(BOUNDS)
  const underway = new Map<string, Promise<Verdict | Unavailable>>()
  let known: string | undefined
  let earlier = remembered
  let trouble: string | undefined

  function forget(): void {
    known = undefined
    earlier = undefined
    events.changed()
  }

  signIn.onRefused(() => {
    if (known !== undefined) forget()
  })

  async function ask(password: string): Promise<Checked> {
    const checked = await signIn.check(password)
    trouble = checked.kind === 'failed' ? `the device could not be asked (${checked.failure})` : undefined
    return checked
  }

  async function decide(password: string): Promise<Verdict | Unavailable> {
    const checked = await ask(password)
    if (checked.kind === 'failed') return { unavailable: checked.failure }
    const isKnown = known !== undefined && isSame(password, known)
    if (checked.kind === 'wrong') {
      // A locked account looks the same; only the device could tell them apart.
      if (isKnown) forget()
      return 'wrong'
    }
    if (known === undefined) return first(password, checked.adopt)
    return isKnown ? settle(password, checked.adopt) : another(password, known, checked.adopt)
  }

  async function first(password: string, adopt: () => void): Promise<Verdict> {
    const before = earlier
    const same = before !== undefined && (await fingerprintOf(password, before.salt)) === before.fingerprint
    settle(password, adopt)
    earlier = undefined
    if (before === undefined) events.learned()
    else if (!same) events.changed()
    return 'right'
  }

  /** Firmware that does not tell cases apart, or cuts passwords short, takes several for right: that is no change. */
  async function another(
    password: string,
    before: string,
    adopt: () => void,
  ): Promise<Verdict | Unavailable> {
    const old = await ask(before)
    if (old.kind === 'failed') return { unavailable: old.failure }
    if (old.kind === 'right') return settle(before, old.adopt)
    settle(password, adopt)
    events.changed()
    return 'right'
  }

  function settle(password: string, adopt: () => void): 'right' {
    known = password
    adopt()
    return 'right'
  }

  async function inTurn(password: string): Promise<Verdict | Unavailable> {
    const entry = await queue.enter()
    if (entry.kind !== 'entered') return 'overloaded'
    try {
      return await decide(password)
    } finally {
      entry.leave()
    }
  }

  return {
    verify(password) {
      const key = digestOf(password).toString('base64')
      const running = underway.get(key) ?? inTurn(password).finally(() => underway.delete(key))
      underway.set(key, running)
      return running
    },
    fingerprint: async (salt) => (known === undefined ? undefined : fingerprintOf(known, salt)),
    state: () => (trouble === undefined ? { readable: true } : { readable: false, reason: trouble }),
    close() {},
  }
}

function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digestOf(one), digestOf(other))
}

function digestOf(password: string): Buffer {
  return createHash('sha256').update(password).digest()
}
