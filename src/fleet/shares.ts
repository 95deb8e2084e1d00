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
  /** True if it has had requests at the device lately. */
  readonly isActive: boolean
  /** True if its whole share is in use, and the device has answered that many. */
  readonly carries: boolean
  /** True if it has stopped. */
  readonly hasLeft: boolean
}

export function textOfBeat({ view, share, level, isActive, carries, hasLeft }: Omit<Beat, 'at'>): string {
  const flags = [isActive && 'a', carries && 'c', hasLeft && 'l'].filter((flag) => flag !== false)
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
    carries: flags.includes('c'),
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

/** How the places are divided among the sidecars. */
interface Division {
  /** Its name. Equal for the same places among the same sidecars. */
  readonly view: string
  shareOf(sidecar: string): number
  /** True if every sidecar that beats keeps to this division. */
  readonly isConfirmed: boolean
  /** True if every sidecar that beats carries its share. */
  readonly isCarried: boolean
}

/**
 * Divides the places in equal parts among the sidecars that beat. A sidecar without requests has one place, and so has a silent one, which
 * may still have a request at the device. Every share is at least one. If no sidecar has requests, all that beat have equal parts.
 */
export function divide(most: number, beats: ReadonlyMap<string, Beat>, now: number): Division {
  const present = [...beats].filter(([, { at, hasLeft }]) => now - at < (hasLeft ? LIFE : GONE))
  const beating = present.filter(([, { at }]) => now - at < LIFE)
  const active = beating.filter(([, { isActive }]) => isActive)
  const busy = (active.length > 0 ? active : beating).map(([id]) => id).sort()
  const idle = present.map(([id]) => id).filter((id) => !busy.includes(id))
  const rest = most - idle.length
  const view = hash('sha256', [most, ...busy, '-', ...idle.sort()].join(' '), 'base64url').slice(0, 16)
  return {
    view,
    shareOf(sidecar) {
      const rank = busy.indexOf(sidecar)
      if (rank < 0) return 1
      return Math.max(1, Math.floor(rest / busy.length) + (rank < rest % busy.length ? 1 : 0))
    },
    isConfirmed: beating.every(([, beat]) => beat.view === view),
    isCarried: beating.every(([, { carries }]) => carries),
  }
}
