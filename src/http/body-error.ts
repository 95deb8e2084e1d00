import type { Refusal } from './refusal.ts'

/** The client paused within the body of its request for longer than it may. */
export class StalledBodyError extends Error {
  override readonly name = 'StalledBodyError'
  constructor() {
    super('the request body stalled')
  }
}

/** The client left within the body of its request, or broke its framing. */
export class BrokenBodyError extends Error {
  override readonly name = 'BrokenBodyError'
  constructor() {
    super('the request body broke off')
  }
}

export const BROKEN_BODY: Refusal = { kind: 'malformed', description: 'The request body broke off.' }

/** The refusal for a client whose body stalled or broke off; undefined for any other error. */
export function bodyFault(error: unknown): Refusal | undefined {
  if (error instanceof StalledBodyError) return { kind: 'request-timeout' }
  return error instanceof BrokenBodyError ? BROKEN_BODY : undefined
}
