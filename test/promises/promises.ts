import { BROWSERS } from './entries/browsers.ts'
import { CONTRACT } from './entries/contract.ts'
import { FIRST_USE } from './entries/first-use.ts'
import { FLEET } from './entries/fleet.ts'
import { CONNECTIONS } from './entries/hardening-connections.ts'
import { DEVICE } from './entries/hardening-device.ts'
import { MESSAGES } from './entries/hardening-messages.ts'
import { OPERATION } from './entries/hardening-operation.ts'
import { REQUESTS } from './entries/hardening-requests.ts'
import { OVERVIEW } from './entries/overview.ts'
import { VERIFYING } from './entries/verifying.ts'

/** Promises of one subject. */
export interface Chapter {
  readonly title: string
  /** What Postern promises, by id. */
  readonly promises: Readonly<Record<string, string>>
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
  { title: 'Sidecars that share a store', promises: FLEET },
  { title: 'Seen at a glance', promises: OVERVIEW },
  { title: 'Browsers', promises: BROWSERS },
  { title: 'Verifying a server', promises: VERIFYING },
]
