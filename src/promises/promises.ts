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
