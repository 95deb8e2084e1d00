import { randomBytes } from 'node:crypto'
import { namesInText, textOfNames } from '../http/scope.ts'
import { type DeviceState, type Epoch, PUBLISH, readState } from './epoch.ts'
import { listOf, type SharedStore, StoreUnavailable } from './shared-store.ts'

/**
 * Whether the password of this sidecar is the one of the shared store. `differs`: another sidecar has published a different one.
 * `unknown`: the store has not answered since the start or since the password changed.
 */
type Agreement =
  | { readonly kind: 'agreed'; readonly generation: number; readonly epoch: string; readonly dataset: string }
  | { readonly kind: 'differs' }
  | { readonly kind: 'unknown' }

interface Dependencies {
  readonly store: SharedStore
  readonly epoch: Epoch
  readonly generation: () => number
  /** The fingerprints of the present passwords: see `textOfNames`. */
  readonly fingerprint: (salt: Uint8Array) => Promise<string>
  /** This sidecar has published a new password, which revoked these grants. */
  readonly onPublished: (revoked: number) => void
  /** Called when the password differs from that of the store, and when it does not any more. */
  readonly onDiffers: (differs: boolean) => void
  readonly onBug: (error: unknown) => void
}

/** How often the state is read until this sidecar agrees with it. Two are usual: one more for each other sidecar that publishes. */
const ROUNDS = 20

const OUTDATED = 'it has lost its data, and this sidecar, which has another password, must not restore it'

/**
 * Keeps the passwords of this sidecar and their fingerprints in the shared store in agreement (C8). The epoch in the store belongs to one
 * set of passwords. The sidecar that sees the password change stores the new fingerprint and begins an epoch, in one script. That voids every
 * token of the names whose password is another one, or gone. A login that was verified under the earlier epoch gets no token.
 *
 * Only a sidecar that has seen a change, or has just started, publishes. Any other one that finds a different fingerprint holds an old
 * password: it refuses every login until its own source changes.
 */
export function createPasswordAgreement(deps: Dependencies) {
  const { store, epoch: known, generation, fingerprint, onPublished, onDiffers, onBug } = deps
  /** True after a start or a change of the password: this sidecar may overwrite the fingerprint in the store. */
  let mayPublish = true
  let agreement: Agreement = { kind: 'unknown' }
  /**
   * The names whose password has changed, and the epoch whose tokens that voids. The password may be the earlier one again before the store
   * answers (an account that was locked and unlocked): its tokens stay void.
   */
  const owed = new Map<string, string>()
  let print: { readonly key: string; readonly value: string } | undefined
  let turn: Promise<unknown> = Promise.resolve()
  const keys = [`${store.prefix}state`]

  /** Reads the state and settles the agreement. Rejects with `StoreUnavailable`. */
  function settle(last = ''): Promise<DeviceState> {
    const settled = turn.then(() => settleNow(last))
    turn = settled.catch(() => {})
    return settled
  }

  async function settleNow(last: string): Promise<DeviceState> {
    for (let round = 0; round < ROUNDS; round++) {
      const before = generation()
      const state = await readState(store, last)
      if (state !== undefined && !known.isBehind(state.epoch)) {
        const own = await printOf(state.salt)
        if (before !== generation()) continue
        known.apply({ ...state, kind: isFoundedAnew(state, own) ? 'founded' : 'begun' })
        forgetVoided(state)
        if (own === state.fingerprint && owed.size === 0) {
          agreeOn(state)
          return state
        }
        if (!mayPublish) {
          if (agreement.kind !== 'differs') onDiffers(true)
          agreement = { kind: 'differs' }
          return state
        }
      }
      if (!mayPublish && agreement.kind !== 'agreed') throw new StoreUnavailable('state', 'error', OUTDATED)
      await publish(state)
    }
    throw new StoreUnavailable('state', 'error', 'its state keeps changing, or its answers make no sense')
  }

  /** Another sidecar has begun an epoch that voids the tokens, too. */
  function forgetVoided({ epoch, since }: DeviceState): void {
    const kept = namesInText(since)
    for (const [name, before] of owed) {
      if (Number(kept.get(name) ?? epoch) > Number(before)) owed.delete(name)
    }
  }

  /** The fingerprint of the present password; it takes 20 ms of processor time, so it is made once for each salt. */
  async function printOf(salt: string): Promise<string> {
    const key = `${generation()} ${salt}`
    if (print?.key !== key) print = { key, value: await fingerprint(Buffer.from(salt, 'base64url')) }
    return print.value
  }

  /** A sidecar that has just started was the first one at the emptied server, with the same password. That voids no token. */
  function isFoundedAnew({ dataset, epoch, founded, fingerprint }: DeviceState, own: string): boolean {
    const before = ownDataset()
    return before !== undefined && before !== dataset && founded === epoch && fingerprint === own
  }

  /**
   * The dataset of the present epoch, if that belongs to this sidecar's password. Then a server that has lost the epoch gets it back.
   */
  function ownDataset(): string | undefined {
    return agreement.kind === 'agreed' && agreement.epoch === known.present ? agreement.dataset : undefined
  }

  async function publish(state: DeviceState | undefined): Promise<void> {
    const before = generation()
    const salt = randomBytes(16).toString('base64url')
    const own = await printOf(salt)
    const since = state === undefined ? '' : await sinceFor(state)
    if (before !== generation()) return
    const dataset = randomBytes(8).toString('hex')
    const restores = ownDataset() === undefined ? 0 : 1
    const args = [state?.epoch ?? '', Number(known.present), salt, own, dataset, restores, since]
    const reply = await store.runDurably(PUBLISH, keys, [store.prefix, ...args])
    const [revoked, epoch, present] = listOf(reply).map(String)
    // Another sidecar was first: the next round reads what it has published.
    if (epoch === undefined || present === undefined) return
    if (before === generation()) agreeOn({ epoch, dataset: present })
    if (state !== undefined) onPublished(Number(revoked))
  }

  /** The names whose password is the one of the state, each with its first epoch. None of a server that has lost the latest epoch. */
  async function sinceFor({ salt, fingerprint, epoch, since }: DeviceState): Promise<string> {
    if (known.isBehind(epoch)) return ''
    const [own, before] = [namesInText(await printOf(salt)), namesInText(since)]
    const same = [...namesInText(fingerprint)].filter(
      ([name, print]) => name !== '' && own.get(name) === print && !owed.has(name),
    )
    return textOfNames(new Map(same.map(([name]) => [name, before.get(name) ?? epoch])))
  }

  function agreeOn({ epoch, dataset }: Pick<DeviceState, 'epoch' | 'dataset'>): void {
    mayPublish = false
    owed.clear()
    if (agreement.kind === 'differs') onDiffers(false)
    agreement = { kind: 'agreed', generation: generation(), epoch, dataset }
  }

  return {
    /** @param name of the password that has changed */
    changed(name: string): void {
      mayPublish = true
      // Not if another sidecar has begun the present epoch: that was for this change.
      if (ownDataset() !== undefined && !owed.has(name)) owed.set(name, known.present)
      if (agreement.kind === 'agreed') agreement = { kind: 'unknown' }
      settle().catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) onBug(error)
        // The store may have the new password already. Once it answers, the feed settles again.
        known.apply({ kind: 'unsettled', name })
      })
    },
    settle,
    /** The agreement, after every change that is under way. */
    async present(): Promise<Agreement> {
      await turn
      if (agreement.kind === 'unknown') await settle().catch(() => {})
      return agreement
    },
  }
}
