import { type Clock, rest } from '../system/clock.ts'
import type { Revocation } from '../tokens/revocation.ts'
import type { TokenCopies } from './copies.ts'
import { type DeviceState, isKept, NO_EVENT } from './epoch.ts'
import { describeGrants } from './grants.ts'
import { REVOKED, saidByOperator } from './operator-words.ts'
import { FOLLOW_LIMIT, type SharedStore, StoreUnavailable, type StreamEntry } from './shared-store.ts'

interface Dependencies {
  readonly clock: Pick<Clock, 'after'>
  readonly store: SharedStore
  readonly copies: TokenCopies
  /**
   * Reads the state and brings this sidecar into agreement with it. Rejects if the store does not answer.
   *
   * @param last the id of the last event that this sidecar has read
   */
  readonly settle: (last: string) => Promise<DeviceState>
  /** The server was emptied or restored, and an epoch has begun that voids all tokens. */
  readonly onLost: () => void
  /** The wall of the device, or the shares of its places, have changed. */
  readonly onPlaces: () => void
  /** An operator has revoked these grants, here or at another sidecar. */
  readonly onOperatorRevoked: (which: Revocation) => void
  readonly onBug: (error: unknown) => void
}

/** The pause before the store is asked again (ms): after it did not answer, and after a bug. */
const PAUSE = 250
const PAUSE_AFTER_BUG = 10_000

/**
 * The state is read after this many waits without a message: a server that was emptied sends none. It is not read after each wait, because
 * the load of idle sidecars decides how many of them one server carries.
 */
const SILENCES = 3

/**
 * Follows the stream of revocations, so this sidecar's copies are right within the delay of a message. After a cut connection, reading
 * continues behind the last entry. If the server does not have that entry any more, the copies are compared with the server's grants.
 */
export function followRevocations(deps: Dependencies) {
  const { clock, store, copies, settle, onLost, onPlaces, onOperatorRevoked, onBug } = deps
  const { epoch } = copies
  const events = `${store.prefix}events`
  let last = ''
  /** The stream has begun anew since the entry that this sidecar read last: entries in between may be lost. */
  let hasGap = false
  /** The epoch when the state was last read. */
  let inEpoch = ''
  const life = new AbortController()

  async function synchronize(): Promise<void> {
    const own = hasGap ? '' : last
    const state = await settle(own)
    const isMissing = own === '' || !isKept(state, own)
    if (isMissing) await compare()
    const isLost = isMissing || epoch.lost === epoch.present
    if (last !== '' && epoch.present !== inEpoch && isLost) onLost()
    inEpoch = epoch.present
    if (isMissing) {
      last = state.last
      hasGap = false
      onPlaces()
    }
    if (last === state.last) copies.heard()
  }

  /** After missed events: revokes at this sidecar every grant that the server does not have any more. */
  async function compare(): Promise<void> {
    const known = copies.grants()
    const live = new Set((await describeGrants(store, copies, known)).map(({ id }) => id))
    epoch.apply({ kind: 'revoked', grants: known.filter((id) => !live.has(id)) })
  }

  /** Returns whether the state is to be read again: an epoch began, or entries before this one may be lost. */
  function apply({ id, fields }: StreamEntry): boolean {
    const before = last
    last = id
    const [said = '', value = '', , since = ''] = fields
    const [kind] = said.split(' ')
    if (kind === 'places') onPlaces()
    else if (kind === REVOKED || kind === 'evicted') {
      const grants = value === '' ? [] : value.split(' ')
      epoch.apply({ kind, grants })
      const meant = saidByOperator(said, grants)
      if (meant !== undefined) onOperatorRevoked(meant)
    } else if (kind === 'epoch') epoch.apply({ kind: 'begun', epoch: value, since })
    if (kind === 'first' && before !== NO_EVENT) hasGap = true
    return kind === 'epoch' || hasGap
  }

  async function follow(): Promise<void> {
    let silences = 0
    while (!life.signal.aborted) {
      const entries = await store.follow(events, last)
      const begun = entries.map(apply).includes(true)
      // After a full answer, more entries may wait, so the copies are not up to date yet.
      if (entries.length < FOLLOW_LIMIT) copies.heard()
      silences = entries.length === 0 ? silences + 1 : 0
      if (begun || silences === SILENCES || !epoch.owed.isEmpty) {
        silences = 0
        await synchronize()
      }
    }
  }

  async function run(onFirst: () => void): Promise<void> {
    while (!life.signal.aborted) {
      copies.forgetUnknown()
      let time = PAUSE
      await synchronize()
        .then(() => {
          copies.inStep = true
        })
        .finally(onFirst)
        .then(follow)
        .catch((error: unknown) => {
          // A refusal is an answer: the connection stays.
          const isRefusal = error instanceof StoreUnavailable && error.failure === 'refused'
          if (!isRefusal) copies.inStep = false
          if (error instanceof StoreUnavailable) return
          onBug(error)
          time = PAUSE_AFTER_BUG
        })
      await rest(clock, time, life.signal)
    }
  }

  return {
    /** Resolves when the first attempt to read the state has ended, well or not. */
    started: new Promise<void>((resolve) => void run(resolve)),
    close: (): void => life.abort(),
  }
}
