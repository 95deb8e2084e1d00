import type { ConditionKey } from './conditions.ts'

/** What docs/evidence.md says of a requirement that depends on the configuration, or that is a task of the vendor. */
export interface Required {
  /** The source and its clause, such as `ASVS 10.4.5`. */
  readonly requirement: string
  /** The clause alone: the end of the same text. */
  readonly clause: string
  readonly status: 'met if configured' | 'contributes' | "vendor's task"
  /** The keys whose conditions must all hold; none for a task of the vendor. */
  readonly keys: readonly ConditionKey[]
  /** What is required, and what remains for the vendor, in sentences. Null if nothing does. */
  readonly vendor: string | null
}
