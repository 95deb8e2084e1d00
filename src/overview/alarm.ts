import { KINDS } from './alarm-kinds.ts'
import type { Alarm, AlarmName, Condition, Point, ServiceCondition } from './model.ts'

/** The condition without the alarms that are derived from it. */
export type Facts = Omit<Condition, 'alarms'>

/** The input of a rule. */
interface View {
  readonly facts: Facts
  /** All points of the history, oldest first. */
  readonly points: readonly Point[]
  /** The points of the last `over` ms. */
  readonly last: (over: number) => readonly Point[]
  /** ms since the Unix epoch. */
  readonly now: number
}

/** Derives alarms from the view alone; mostly none. */
export type Rule = (view: View) => Iterable<Alarm>

type Own = { readonly what: string } & Partial<Pick<Alarm, 'level' | 'since' | 'meaning'>> & {
    readonly remedy?: string
    /** Tells alarms of the same name apart. */
    readonly of?: string | null
  }

/** An alarm of this kind, with the texts of `own` where it has them. */
export function raise(name: AlarmName, own: Own): Alarm {
  const kind = KINDS[name]
  const { what, level = kind.level, since = null, meaning = kind.meaning, of = null } = own
  const remedy = own.remedy ?? kind.remedy ?? ''
  const key = of === null ? name : `${name} ${of}`
  return { name, key, level, what, since, meaning: sentence(meaning), remedy: sentence(remedy) }
}

/** A clause of `KINDS` as a sentence. */
export function sentence(clause: string): string {
  return `${clause.charAt(0).toUpperCase()}${clause.slice(1)}${clause.endsWith('?') ? '' : '.'}`
}

export function serviceName({ route }: ServiceCondition, { services }: Facts): string {
  return services.length === 1 ? 'The device' : `The service ${route ?? 'at /'} of the device`
}

/** The name of a refusal or failure as words: `rate_limited` is `rate limited`. */
export function words(reason: string): string {
  return reason.replaceAll(/[_-]/g, ' ')
}

/** A whole number with thousands separators. */
export function count(value: number): string {
  return String(Math.round(value)).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
}

/** A part of a whole in percent: `83 %`, `0.4 %`. The whole must not be 0. */
export function share(part: number, whole: number): string {
  const percent = (100 * part) / whole
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`
}

export function sumOf<Value>(values: readonly Value[], amount: (value: Value) => number): number {
  return values.reduce((sum, value) => sum + amount(value), 0)
}
