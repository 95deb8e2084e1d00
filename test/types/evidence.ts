// Compiled by `npm run types`, never run. Each line under `@ts-expect-error` must not compile. If one compiles, a requirement can claim more
// than the tests show, and the compiler reports the unused directive.

import type { Requirement } from '../evidence/requirement.ts'

const says = 'It is so.'
const vendor = 'Show the rest.'
const reason = 'It is a part.'

export const KNOWN: readonly Requirement[] = [
  { says, status: 'met', promises: ['C1'] },
  { says, status: 'met if configured', promises: ['C1'], keys: ['enforce'], vendor },
  { says, status: 'contributes', promises: ['C1'], reason, vendor },
  { says, status: "vendor's task", vendor },
  { says, status: 'not met', reason },
]

// @ts-expect-error a promise that does not exist
export const UNKNOWN_PROMISE: Requirement = { says, status: 'met', promises: ['D1'] }

// @ts-expect-error met without a promise
export const NO_PROMISE: Requirement = { says, status: 'met', promises: [] }

// @ts-expect-error a key that is no condition
export const UNKNOWN_KEY: Requirement = { says, status: 'met if configured', promises: ['C1'], keys: ['x'] }

// @ts-expect-error conditions without a key
export const NO_KEY: Requirement = { says, status: 'met if configured', promises: ['C1'], keys: [] }

// @ts-expect-error a part without a reason
export const PART_WITHOUT_REASON: Requirement = { says, status: 'contributes', promises: ['C1'], vendor }

// @ts-expect-error a part without what remains
export const PART_WITHOUT_TASK: Requirement = { says, status: 'contributes', promises: ['C1'], reason }

// @ts-expect-error no task of the vendor
export const NO_TASK: Requirement = { says, status: "vendor's task", reason }

// @ts-expect-error not met without a reason
export const NOT_MET_WITHOUT_REASON: Requirement = { says, status: 'not met' }
