/** What happens to the whole house, and excuses what otherwise would be a fault. */
export type Disturbance = 'device' | 'password' | 'configuration'

interface Spell {
  readonly kind: Disturbance
  readonly from: number
  until: number
}

/** When what was going on: requests that ran through a disturbance may end as it makes them end. Times in ms. */
export interface Weather {
  /** Begins a disturbance; what is returned ends it, and its effects end so much later. */
  begin(kind: Disturbance, effects: number): () => void
  /** Whether a disturbance of this kind had any effect in this time. */
  was(kind: Disturbance, from: number, until: number): boolean
}

export function createWeather(now: () => number): Weather {
  const spells: Spell[] = []
  return {
    begin(kind, effects) {
      const spell: Spell = { kind, from: now(), until: Number.POSITIVE_INFINITY }
      spells.push(spell)
      return () => {
        spell.until = now() + effects
      }
    },
    was: (kind, from, until) =>
      spells.some((spell) => spell.kind === kind && spell.from <= until && spell.until >= from),
  }
}
