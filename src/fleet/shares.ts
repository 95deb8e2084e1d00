import { hash } from 'node:crypto'

/** What a sidecar has said of itself, and when, by the server's clock (ms). */
export interface Beat {
  readonly at: number
  /** The division that it keeps to: it has no more than its share in it. Empty: in none. */
  readonly view: string
  /** Its places. */
  readonly share: number
  /** Its requests at the device; for some seconds after an outage those that worked before it. */
  readonly level: number
  /** It has had requests at the device lately. */
  readonly isActive: boolean
  /** As many as it may have are there, and so many have worked. */
  readonly carries: boolean
  /** It has stopped. */
  readonly hasLeft: boolean
}

export function textOfBeat({ view, share, level, isActive, carries, hasLeft }: Omit<Beat, 'at'>): string {
  const flags = [isActive && 'a', carries && 'c', hasLeft && 'l'].filter((flag) => flag !== false)
  return `${view || '-'} ${share} ${level} ${flags.join('') || '-'}`
}

/** The beat in the text of the store, which begins with its time; undefined if there is none. */
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
 * After so long (ms) without a beat the others share the places of a sidecar, except one: what it had in flight has ended by then. Long enough
 * for a restart. One that has stopped keeps none.
 */
export const LIFE = 30_000

/** A sidecar that was silent for so long (ms) is gone: its tokens work no longer than that without the store, by default. */
export const GONE = 3_600_000

/** How the places are divided among the sidecars. */
export interface Division {
  /** Its name. The same sidecars with the same places have the same. */
  readonly view: string
  shareOf(sidecar: string): number
  /** Every sidecar that beats keeps to this division. */
  readonly isConfirmed: boolean
  /** Every sidecar that beats carries what it has. */
  readonly isCarried: boolean
}

/**
 * Divides the places in equal parts among the sidecars that beat. One without requests has one place, and so has a silent one: it may still be
 * at the device. Each has at least one. If none has requests, all that beat have equal parts.
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
