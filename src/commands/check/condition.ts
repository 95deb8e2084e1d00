import type { Config } from '../../config/schema.ts'

/** What a requirement of docs/evidence.md asks of one configuration key. */
export interface Condition {
  /** The value that is wanted, in words that follow the name of the key and a colon. */
  readonly wanted: string
  /** What follows from another value: a clause. */
  readonly cost: string
  /** The present values: one, or one of each service, name or file that the key is about. None: nothing to ask about. */
  readonly settings: (config: Config) => readonly Setting[] | Promise<readonly Setting[]>
}

/** The present value of a key. */
export interface Setting {
  /** The key of this one, if the configuration has several. */
  readonly key?: string
  /** As text, without secrets. */
  readonly value: string
  readonly holds: boolean
}
