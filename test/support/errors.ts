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

/** Holds an answer against C18: the status, the code, the exact shape, one sentence, and nothing that leaks. */
export function expectError(answer: Response, status: number, code: ErrorCode): void {
  const body = answer.json()
  expect({ status: answer.status, error: body.error }, answer.text).toEqual({ status, error: code })
  expect(Object.keys(body)).toEqual(['error', 'error_description'])
  expect(answer.header('Content-Type')).toBe('application/json;charset=UTF-8')
  const description = body.error_description
  // RFC 6749 §5.2 allows no quotation mark or backslash in error codes and descriptions unescaped; JSON escapes them.
  expect(description).toMatch(/^[A-Z][\x20-\x7e]*\.$/)
  expect(description, 'one sentence').not.toMatch(/[.!?] /)
  expect(answer.text, 'an address').not.toMatch(/\d+\.\d+\.\d+|127\.|localhost|::1|:\d{4,5}/)
  expect(answer.text, 'a path').not.toMatch(/\/(?:work|tmp|src|node_modules|home|etc|var|run)\b/)
  expect(answer.text, 'a file or a stack').not.toMatch(/\.[cm]?[jt]s\b|\bat \S+ \(/)
  expect(answer.text, 'a part or its error').not.toMatch(/node|undici|postern|Error:/i)
  expect(answer.text, 'a system error').not.toMatch(/\bE[A-Z]{3,}\b/)
}

/** The `error` parameter of `Proxy-Status` (RFC 9209 §2.1.1), of a field that has one member naming this proxy. */
export function proxyError(answer: Response): string | undefined {
  return /^postern; ?error=([a-z_]+)$/.exec(answer.header('Proxy-Status') ?? '')?.[1]
}
