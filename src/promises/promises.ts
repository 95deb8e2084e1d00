import { CONTRACT } from './contract.ts'
import { FIRST_USE } from './first-use.ts'
import { FLEET } from './fleet.ts'
import { CONNECTIONS } from './hardening-connections.ts'
import { DEVICE } from './hardening-device.ts'
import { MESSAGES } from './hardening-messages.ts'
import { OPERATION } from './hardening-operation.ts'
import { REQUESTS } from './hardening-requests.ts'
import { OVERVIEW } from './overview.ts'
import type { Outside, Promised } from './promised.ts'
import { VERIFYING } from './verifying.ts'

/** Promises of one subject, by id. */
export interface Chapter {
  readonly title: string
  readonly promises: Readonly<Record<string, Promised>>
}

const TABLE = [
  { title: 'The contract with clients', promises: CONTRACT },
  { title: 'Messages', promises: MESSAGES },
  { title: 'Requests', promises: REQUESTS },
  { title: 'Connections', promises: CONNECTIONS },
  { title: 'The device', promises: DEVICE },
  { title: 'Limits, files and records', promises: OPERATION },
  { title: 'First use', promises: FIRST_USE },
  { title: 'Sidecars that share a store', promises: FLEET },
  { title: 'Seen at a glance', promises: OVERVIEW },
  { title: 'Verifying a server', promises: VERIFYING },
] as const satisfies readonly Chapter[]

/**
 * Every promise of Postern: `C…` is the contract with clients, `H…` what it withstands. Code, tests and pages cite the ids.
 * An id is never given a second meaning; a new one takes the next free number.
 */
export const CHAPTERS: readonly Chapter[] = TABLE

/** The ids of a chapter, or of several, whose promises have `outside`. */
type OutsideIds<Promises> = Promises extends unknown
  ? {
      [Id in keyof Promises]: Promises[Id] extends { readonly outside: Outside } ? Id : never
    }[keyof Promises]
  : never

/** A promise that `postern verify` reports, by its id. */
export type OutsideId = OutsideIds<(typeof TABLE)[number]['promises']>

type OutsideEntry = [OutsideId, Promised & { readonly outside: Outside }]

/** What `postern verify` reports, in the order of the ids. */
export const OUTSIDE: ReadonlyMap<OutsideId, Outside> = new Map(
  CHAPTERS.flatMap(({ promises }) => Object.entries(promises))
    .filter((entry): entry is OutsideEntry => entry[1].outside !== undefined)
    .map(([id, { outside }]) => [id, outside]),
)
