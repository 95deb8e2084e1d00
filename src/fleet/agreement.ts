import { randomBytes } from 'node:crypto'
import { namesInText, textOfNames } from '../http/scope.ts'
import type { Agreement } from '../tokens/issuing.ts'
import { PASSWORD_CHANGED } from '../tokens/revocation.ts'
import { type DeviceState, type Epoch, hasGoneBack, PUBLISH, readState } from './epoch.ts'
import { revokeAtServer } from './grants.ts'
import { runScriptDurably } from './scripts.ts'
import { type SharedStore, StoreUnavailable, unlessUnavailable } from './shared-store.ts'

interface Dependencies {
  readonly store: SharedStore
  readonly epoch: Epoch
  readonly generation: () => number
  /** The fingerprints of the present passwords: see `textOfNames`. */
  readonly fingerprint: (salt: Uint8Array) => Promise<string>
  /** The store has revoked grants for this sidecar. `ids` is undefined if a new epoch voided the grants. */
  readonly onRevoked: (revoked: number, reason: string, ids?: readonly string[]) => void
  /** Called when the password differs from that of the store, and when it does not any more. */
  readonly onDiffers: (differs: boolean) => void
  readonly onBug: (error: unknown) => void
}

/** The most reads of the state for one agreement. Two are usual, and each other sidecar that publishes costs one more. */
const ROUNDS = 20

const OUTDATED =
  'it has lost its data, and this sidecar, which has another password, does not write them anew'

/**
 * Keeps the passwords of this sidecar in agreement with their fingerprints in the shared store (C8). Each epoch in the store belongs to one
 * set of passwords. The sidecar that sees a password change stores the new fingerprint and begins an epoch, in one script. The epoch voids
 * the tokens of every name whose password has changed or is gone. A login that was verified under the earlier epoch gets no token.
 *
 * Only a sidecar that has seen a change, or has just started, publishes a fingerprint. Another sidecar that finds a different fingerprint
 * in the store has an old password: it refuses every login until its own source changes.
 *
 * A server that was emptied, or restored from a backup, may still have tokens that were revoked meanwhile, and may lack data that a sidecar
 * knows. A sidecar that notices this begins an epoch later than all that it knows: every client logs in again.
 *
 * After each read of the state, the sidecar sends the revocations that it owes to the store (`owed.ts`). No login comes before that.
 */
export function createPasswordAgreement(deps: Dependencies) {
  const { store, epoch: known, generation, fingerprint, onRevoked, onDiffers, onBug } = deps
  const { owed } = known
  const reported = unlessUnavailable(onBug)
  /** True after a start or a change of the password: this sidecar may overwrite the fingerprint in the store. */
  let mayPublish = true
  let agreement: Agreement = { kind: 'unknown' }
  let lastFingerprint: { readonly key: string; readonly value: string } | undefined
  let turn: Promise<unknown> = Promise.resolve()

  /** Reads the state, settles the agreement, and sends the owed revocations if the store takes them. Rejects with `StoreUnavailable`. */
  function settle(last = ''): Promise<DeviceState> {
    const settled = turn
      .then(() => settleNow(last))
      .then((state) => (owed.isEmpty ? state : pay(state, last)))
    turn = settled.catch(() => {})
    return settled
  }

  /** Sends the owed revocations, and returns the state after that. Those that the store does not take stay owed. */
  async function pay(first: DeviceState, last: string): Promise<DeviceState> {
    let state = first
    try {
      await payGrants()
      for (const [name, { reason }] of owed.names) {
        const since = sinceOf(state, (each) => each !== name)
        const begun = await enter(state, { ...state, since }, reason)
        if (begun !== undefined) owed.names.delete(name)
        state = await settleNow(last)
      }
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
    return state
  }

  async function settleNow(last: string): Promise<DeviceState> {
    for (let round = 0; round < ROUNDS; round++) {
      const before = generation()
      const state = await readState(store, last)
      const isLost = hasLost(state, last)
      if (state !== undefined && !isLost) {
        const own = await fingerprintWith(state.salt)
        if (before !== generation()) continue
        known.apply({ ...state, kind: 'begun' })
        owed.forgetVoided(state)
        if (own === state.fingerprint) {
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
      try {
        await publish(state, isLost)
      } catch (error) {
        // The store answers, but accepts no writes. This sidecar follows its revocations all the same.
        if (error instanceof StoreUnavailable && state !== undefined && !isLost) return state
        throw error
      }
    }
    throw new StoreUnavailable('state', 'error', 'its state keeps changing, or its answers make no sense')
  }

  async function payGrants(): Promise<void> {
    for (const [reason, grants] of Map.groupBy(owed.grants.keys(), (id) => owed.grants.get(id) ?? '')) {
      for await (const { page, held } of revokeAtServer(store, grants)) {
        for (const id of page) owed.grants.delete(id)
        if (held.length > 0) onRevoked(held.length, reason, held)
      }
    }
  }

  /** The fingerprint of the present password. A derivation takes 20 ms of processor time, so the last result is kept. */
  async function fingerprintWith(salt: string): Promise<string> {
    const key = `${generation()} ${salt}`
    if (lastFingerprint?.key !== key)
      lastFingerprint = { key, value: await fingerprint(Buffer.from(salt, 'base64url')) }
    return lastFingerprint.value
  }

  /** Whether the server was emptied or restored since this sidecar heard from it, and no sidecar has begun an epoch since. */
  function hasLost(state: DeviceState | undefined, last: string): boolean {
    if (known.present === '') return false
    if (state === undefined || known.isBehind(state.epoch)) return true
    const isVoid = state.epoch !== known.present && state.since === ''
    return !isVoid && hasGoneBack(state, last)
  }

  /** Whether the present epoch belongs to the password of this sidecar. */
  function isOwnEpoch(): boolean {
    return agreement.kind === 'agreed' && agreement.epoch === known.present
  }

  async function publish(state: DeviceState | undefined, isLost: boolean): Promise<void> {
    const before = generation()
    const salt = randomBytes(16).toString('base64url')
    const own = await fingerprintWith(salt)
    const since = state === undefined || isLost ? '' : await sinceFor(state)
    if (before !== generation()) return
    const begun = await enter(state, { salt, fingerprint: own, since }, isLost ? undefined : PASSWORD_CHANGED)
    if (begun !== undefined && before === generation()) agreeOn(begun)
  }

  /**
   * Begins an epoch with this fingerprint. Undefined if another sidecar was first: the next round reads the state that it has published.
   *
   * @param since the names whose tokens stay valid, each with its first epoch
   * @param reason why the grants end; undefined if the server has lost them
   */
  async function enter(
    state: DeviceState | undefined,
    { salt, fingerprint, since }: Pick<DeviceState, 'salt' | 'fingerprint' | 'since'>,
    reason: string | undefined,
  ): Promise<Pick<DeviceState, 'epoch'> | undefined> {
    const args = [state?.epoch ?? '', Number(known.present), salt, fingerprint, since]
    const [revoked, epoch] = (await runScriptDurably(store, PUBLISH, ...args)).map(String)
    if (epoch === undefined || known.isBehind(epoch)) return undefined
    if (reason === undefined) known.lost = epoch
    else if (state !== undefined) onRevoked(Number(revoked), reason)
    return { epoch }
  }

  /** `since` for the next epoch: the names whose password here is the one of the state, each with its first epoch. */
  async function sinceFor(state: DeviceState): Promise<string> {
    const [own, theirs] = [namesInText(await fingerprintWith(state.salt)), namesInText(state.fingerprint)]
    return sinceOf(state, (name) => own.get(name) === theirs.get(name))
  }

  /** `since` for the next epoch: the names of the state that `stays` accepts, each with its first epoch. */
  function sinceOf({ fingerprint, epoch, since }: DeviceState, stays: (name: string) => boolean): string {
    const before = namesInText(since)
    const names = [...namesInText(fingerprint).keys()].filter((name) => name !== '' && stays(name))
    return textOfNames(new Map(names.map((name) => [name, before.get(name) ?? epoch])))
  }

  function agreeOn({ epoch }: Pick<DeviceState, 'epoch'>): void {
    mayPublish = false
    if (agreement.kind === 'differs') onDiffers(false)
    agreement = { kind: 'agreed', generation: generation(), epoch }
  }

  /** Whether the store has every revocation of a name by this sidecar. Settles first if one is owed, or if the agreement is unknown. */
  async function isSettled(): Promise<boolean> {
    await turn
    if (agreement.kind === 'unknown' || owed.names.size > 0) await settle().catch(reported)
    return owed.names.size === 0
  }

  /** The agreement, once every change under way has settled. */
  async function present(): Promise<Agreement> {
    return (await isSettled()) ? agreement : { kind: 'unknown' }
  }

  return {
    /** @param name of the password that has changed */
    async changed(name: string): Promise<void> {
      mayPublish = true
      // If another sidecar has begun the present epoch, it did so for this change.
      if (isOwnEpoch() && !owed.names.has(name))
        owed.names.set(name, { epoch: known.present, reason: PASSWORD_CHANGED })
      if (agreement.kind === 'agreed') agreement = { kind: 'unknown' }
      const isPublished = await settle().then(
        () => agreement.kind === 'agreed' && !owed.names.has(name),
        reported,
      )
      // The store may have the new password already. Once it answers, the feed settles again.
      if (isPublished !== true) known.apply({ kind: 'unsettled', name })
    },
    settle,
    isSettled,
    present,
    beforeLogin: present,
  }
}
