import { expect } from 'vitest'
import { type Fields, fieldValues } from '../../src/http/fields.ts'
import type { Response } from './message.ts'
import type { TestSidecar } from './sidecar.ts'

/** The error codes of C18. */
export type ErrorCode =
  | 'invalid_request'
  | 'invalid_grant'
  | 'unsupported_grant_type'
  | 'invalid_token'
  | 'rate_limited'
  | 'server_error'
  | 'upstream_unavailable'
  | 'upstream_timeout'
  | 'overloaded'

/** Checks a response against C18: the status, the code, the exact JSON members, one sentence, and no internals. */
export function expectError(response: Response, status: number, code: ErrorCode): void {
  const body = response.json()
  expect({ status: response.status, error: body.error }, response.text).toEqual({ status, error: code })
  expect(Object.keys(body)).toEqual(['error', 'error_description'])
  expect(response.header('Content-Type')).toBe('application/json;charset=UTF-8')
  const description = body.error_description
  // RFC 6749 §5.2 forbids unescaped quotation marks and backslashes in codes and descriptions; JSON escapes them.
  expect(description).toMatch(/^[A-Z][\x20-\x7e]*\.$/)
  expect(description, 'one sentence').not.toMatch(/[.!?] /)
  expect(response.text, 'an address').not.toMatch(/\d+\.\d+\.\d+|127\.|localhost|::1|:\d{4,5}/)
  expect(response.text, 'a path').not.toMatch(/\/(?:work|tmp|src|node_modules|home|etc|var|run)\b/)
  expect(response.text, 'a file or a stack').not.toMatch(/\.[cm]?[jt]s\b|\bat \S+ \(/)
  expect(response.text, 'a component or its error').not.toMatch(/node|undici|postern|Error:/i)
  expect(response.text, 'a system error').not.toMatch(/\bE[A-Z]{3,}\b/)
}

/** The `error` parameter of `Proxy-Status` (RFC 9209 §2.1.1), if its only member names this proxy. */
export function proxyError(response: Response): string | undefined {
  return /^postern; ?error=([a-z_]+)$/.exec(response.header('Proxy-Status') ?? '')?.[1]
}

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

/** How long (ms) a connection to the device is kept that was still opening when its client left. */
const KEPT_UNUSED = 4_000

/**
 * Checks what must hold after every attack: the sidecar runs, the next good request gets 200, and
 * no connection of the attack stays, neither from clients nor at the device.
 * @param kept how many idle connections to the device may remain: as many as were in use at once
 */
export async function expectUnharmed(sidecar: TestSidecar, token: string, kept = 1): Promise<void> {
  expect((await sidecar.request({ path: '/good', token })).status).toBe(200)
  const { device, clock } = sidecar
  await expect
    .poll(async () => {
      const figure = await sidecar.figures()
      return {
        clients: figure('postern_connections'),
        tunnels: figure('postern_tunnels'),
        inFlight: figure('postern_upstream_in_flight'),
      }
    })
    .toEqual({ clients: 0, tunnels: 0, inFlight: 0 })
  if (device.openConnections > kept) await clock.advance(KEPT_UNUSED)
  await expect.poll(() => Math.max(kept, device.openConnections)).toBe(kept)
}
