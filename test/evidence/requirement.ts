import type { ConditionKey } from '../../src/commands/check/conditions.ts'
import type { BROWSERS } from '../promises/entries/browsers.ts'
import type { CONTRACT } from '../promises/entries/contract.ts'
import type { FIRST_USE } from '../promises/entries/first-use.ts'
import type { FLEET } from '../promises/entries/fleet.ts'
import type { CONNECTIONS } from '../promises/entries/hardening-connections.ts'
import type { DEVICE } from '../promises/entries/hardening-device.ts'
import type { MESSAGES } from '../promises/entries/hardening-messages.ts'
import type { OPERATION } from '../promises/entries/hardening-operation.ts'
import type { REQUESTS } from '../promises/entries/hardening-requests.ts'
import type { OVERVIEW } from '../promises/entries/overview.ts'
import type { VERIFYING } from '../promises/entries/verifying.ts'

/** The id of a promise. Another one does not compile. */
export type PromiseId =
  | keyof typeof BROWSERS
  | keyof typeof CONTRACT
  | keyof typeof FIRST_USE
  | keyof typeof FLEET
  | keyof typeof CONNECTIONS
  | keyof typeof DEVICE
  | keyof typeof MESSAGES
  | keyof typeof OPERATION
  | keyof typeof REQUESTS
  | keyof typeof OVERVIEW
  | keyof typeof VERIFYING

/** A list without an entry does not compile. */
type Some<T> = readonly [T, ...T[]]

interface Told {
  /** What the source requires: our own paraphrase in one sentence, never the words of the source. */
  readonly says: string
  /** What remains for the vendor to do, in sentences. */
  readonly vendor?: string
}

/** One clause of a source, and what Postern has to show for it. `reason` says in sentences why the status is no better. */
export type Requirement = Told &
  (
    | {
        /** A test of these promises goes red if the whole clause breaks, in every configuration. */
        readonly status: 'met'
        readonly promises: Some<PromiseId>
      }
    | {
        /** The same, if the conditions of these keys hold. */
        readonly status: 'met if configured'
        readonly promises: Some<PromiseId>
        readonly keys: Some<ConditionKey>
      }
    | {
        /** The promises show a part of the clause. */
        readonly status: 'contributes'
        readonly promises: Some<PromiseId>
        readonly reason: string
        readonly keys?: Some<ConditionKey>
        readonly vendor: string
      }
    | {
        /** Postern has no part in it. */
        readonly status: "vendor's task"
        readonly reason?: string
        readonly vendor: string
      }
    | {
        readonly status: 'not met'
        readonly reason: string
        readonly promises?: Some<PromiseId>
      }
  )

export type Status = Requirement['status']

/** A document with requirements, as it was read. */
export interface Source {
  /** Short: the prefix of its requirements, such as `ASVS`. */
  readonly name: string
  readonly title: string
  /** The version that was read, in sentences; if it is not the newest, what is known about the newer one. */
  readonly version: string
  /** Where it was read. */
  readonly readAt: string
  /** By the number of the clause as the source writes it, in its order. */
  readonly requirements: Readonly<Record<string, Requirement>>
  /** Clauses of what was read that are no row, by number or range, each with the reason in a sentence: Postern has no such thing. */
  readonly leftOut?: Readonly<Record<string, string>>
}
