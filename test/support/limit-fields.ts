import { expect } from 'vitest'
import type { Fields } from '../../src/http/fields.ts'
import { fieldValues } from '../../src/http/fields.ts'

/** The values of the rate-limit fields of a response. */
export interface Limits {
  readonly limit: number
  readonly remaining: number
  /** Unix time in seconds. */
  readonly reset: number
}

function whole(fields: Fields, name: string): number {
  const values = fieldValues(fields, name.toLowerCase())
  expect(values, name).toEqual([expect.stringMatching(/^\d+$/)])
  return Number(values[0])
}

/** Reads the three fields of C16. Fails unless each occurs exactly once and is a non-negative integer. */
export function limitsOf({ fields }: { readonly fields: Fields }): Limits {
  return {
    limit: whole(fields, 'X-RateLimit-Limit'),
    remaining: whole(fields, 'X-RateLimit-Remaining'),
    reset: whole(fields, 'X-RateLimit-Reset'),
  }
}
