import { hash } from 'node:crypto'

/** The last report of a sidecar about itself. `at`: when the server got it, by the server's clock (ms). */
export interface Beat {
  readonly at: number
  /** The name of the division that the sidecar keeps to, so it has no more requests than its share; empty if there is none. */
  readonly view: string
  /** Its places. */
  readonly share: number
  /** Its requests at the device. For some seconds after an outage: those that worked before the outage. */
  readonly level: number
  /** True if it has had requests lately, at the device or waiting for a place. */
  readonly isActive: boolean
  /** True if it has stopped. */
  readonly hasLeft: boolean
}

export function textOfBeat({ view, share, level, isActive, hasLeft }: Omit<Beat, 'at'>): string {
  const flags = [isActive && 'a', hasLeft && 'l'].filter((flag) => flag !== false)
  return `${view || '-'} ${share} ${level} ${flags.join('') || '-'}`
}

/** Reads a beat from the text in the store, which begins with its time; undefined if the text is no beat. */
export function readBeat(text = ''): Beat | undefined {
  const [, at, view = '', share, level, flags = ''] = /^(\d+) (\S+) (\d+) (\d+) (\S+)$/.exec(text) ?? []
  if (at === undefined) return undefined
  return {
    at: Number(at),
    view: view === '-' ? '' : view,
    share: Number(share),
    level: Number(level),
    isActive: flags.includes('a'),
    hasLeft: flags.includes('l'),
  }
}

/**
 * After this time (ms) without a beat, the others share the places of a sidecar, except one: its requests in flight have ended by then. The
 * time is long enough for a restart. A sidecar that has stopped keeps no place.
 */
export const LIFE = 30_000

/** A sidecar that was silent for this time (ms) is gone: by default, it accepts its copies of tokens no longer without the store. */
export const GONE = 3_600_000

/** If more sidecars have requests than there are places, one place passes to the next sidecar after this time (ms, by the server's clock). */
export const TURN = 10_000

/** How the places are divided among the sidecars. */
interface Division {
  /** Its name. Equal for the same places among the same sidecars. */
  readonly view: string
  shareOf(sidecar: string): number
  /** True if every sidecar that beats keeps to this division. */
  readonly isConfirmed: boolean
}

/**
 * Divides so many places among the sidecars: all shares together are never more.
 *
 * - A silent sidecar, which may still have a request at the device, has one place. Silent ones never have the last place: a fleet outlives
 *   its sidecars.
 * - The others are for those with requests, in equal parts; for all that beat, if none has requests. If those with requests are
 *   more than the places, they take turns.
 * - A sidecar without requests has one place while those with requests leave some.
 */
export function divide(most: number, beats: ReadonlyMap<string, Beat>, now: number): Division {
  const present = [...beats].filter(([, { at, hasLeft }]) => now - at < (hasLeft ? LIFE : GONE))
  const beating = present.filter(([, { at }]) => now - at < LIFE)
  const active = beating.filter(([, { isActive }]) => isActive)
  const busy = idsOf(active.length > 0 ? active : beating)
  const idle = idsOf(beating).filter((id) => !busy.includes(id))
  const silent = idsOf(present.filter((each) => !beating.includes(each)))
  const ofSilent = Math.min(silent.length, most - 1)
  const ofIdle = Math.min(idle.length, Math.max(0, most - ofSilent - busy.length))
  const ofBusy = most - ofSilent - ofIdle
  const takesTurns = active.length > 0 && ofBusy < busy.length
  const turn = takesTurns ? Math.floor(now / TURN) % busy.length : 0
  const all = [most, turn, ...busy, '-', ...idle, '-', ...silent]
  const view = hash('sha256', all.join(' '), 'base64url').slice(0, 16)
  return {
    view,
    shareOf(sidecar) {
      if (silent.includes(sidecar)) return Number(silent.indexOf(sidecar) < ofSilent)
      if (idle.includes(sidecar)) return Number(idle.indexOf(sidecar) < ofIdle)
      const rank = (busy.indexOf(sidecar) + turn) % busy.length
      return Math.floor(ofBusy / busy.length) + Number(rank < ofBusy % busy.length)
    },
    isConfirmed: beating.every(([, beat]) => beat.view === view),
  }
}

function idsOf(beats: readonly (readonly [string, Beat])[]): readonly string[] {
  return beats.map(([id]) => id).sort()
}
