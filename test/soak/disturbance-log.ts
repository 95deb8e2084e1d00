/** A change that excuses responses that would otherwise be faults. */
export type Disturbance = 'device' | 'password' | 'configuration'

interface Interval {
  readonly kind: Disturbance
  readonly from: number
  until: number
}

/** Records when disturbances had effects (ms), because requests of that time may end differently. */
export interface DisturbanceLog {
  /** Begins a disturbance. The returned function ends it; its effects last `effects` ms longer. */
  begin(kind: Disturbance, effects: number): () => void
  /** Whether a disturbance of this kind had any effect in this time. */
  affected(kind: Disturbance, from: number, until: number): boolean
}

export function createDisturbanceLog(now: () => number): DisturbanceLog {
  const intervals: Interval[] = []
  return {
    begin(kind, effects) {
      const interval: Interval = { kind, from: now(), until: Number.POSITIVE_INFINITY }
      intervals.push(interval)
      return () => {
        interval.until = now() + effects
      }
    },
    affected: (kind, from, until) =>
      intervals.some(
        (interval) => interval.kind === kind && interval.from <= until && interval.until >= from,
      ),
  }
}
