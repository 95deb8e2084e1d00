import { expect } from 'vitest'
import type { Response } from './message.ts'

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
