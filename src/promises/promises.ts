import { CONTRACT, type Promised } from './contract.ts'
import { FIRST_USE } from './first-use.ts'
import { CONNECTIONS } from './hardening-connections.ts'
import { DEVICE } from './hardening-device.ts'
import { MESSAGES } from './hardening-messages.ts'
import { OPERATION } from './hardening-operation.ts'
import { REQUESTS } from './hardening-requests.ts'

/** Promises of one subject, by id. */
export interface Chapter {
  readonly title: string
  readonly promises: Readonly<Record<string, Promised>>
}

/**
 * Every promise of Postern: `C…` is the contract with clients, `H…` what it withstands. Code, tests and pages cite the ids.
 * An id is never given a second meaning; a new one takes the next free number.
 */
export const CHAPTERS: readonly Chapter[] = [
  { title: 'The contract with clients', promises: CONTRACT },
  { title: 'Messages', promises: MESSAGES },
  { title: 'Requests', promises: REQUESTS },
  { title: 'Connections', promises: CONNECTIONS },
  { title: 'The device', promises: DEVICE },
  { title: 'Limits, files and records', promises: OPERATION },
  { title: 'First use', promises: FIRST_USE },
]

/** The ids of a chapter that `postern verify` checks. */
type OutsideIds<Promises> = {
  [Id in keyof Promises]: Promises[Id] extends { readonly outside: string } ? Id : never
}[keyof Promises]

/** A promise that `postern verify` checks, by its id. */
export type OutsideId =
  | OutsideIds<typeof CONTRACT>
  | OutsideIds<typeof REQUESTS>
  | OutsideIds<typeof OPERATION>

/** The promises that `postern verify` checks, in the order of their ids. */
export const OUTSIDE: ReadonlyMap<OutsideId, Promised> = new Map(
  CHAPTERS.flatMap(({ promises }) =>
    // Every key whose promise has `outside` is an `OutsideId`.
    Object.entries(promises).flatMap(([id, promise]) =>
      promise.outside === undefined ? [] : [[id as OutsideId, promise] as const],
    ),
  ),
)
