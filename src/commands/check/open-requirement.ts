import type { ConditionKey } from './conditions.ts'

/** A requirement of docs/evidence.md that Postern alone does not meet: it depends on the configuration, or leaves a task to the vendor. */
export interface OpenRequirement {
  /** The source and its clause, such as `ASVS 10.4.5`. */
  readonly requirement: string
  /** The clause alone: the end of the same text. */
  readonly clause: string
  readonly status: 'met if configured' | 'contributes' | "vendor's task"
  /** The keys whose conditions must all hold; none for a task of the vendor. */
  readonly keys: readonly ConditionKey[]
  /** What is required, and what remains for the vendor, in sentences. Null if nothing remains. */
  readonly vendor: string | null
}
