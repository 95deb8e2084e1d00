import type { GrantSummary } from '../tokens/grant-table.ts'
import type { Handout } from '../tokens/handout.ts'
import type { HandOut } from '../tokens/issuing.ts'
import { type AdminResponse, json, STORE_SILENT } from './admin-response.ts'

/** The bounds of the lifetime of an issued token (ms): a minute to 366 days. */
export const SHORTEST = 60_000
export const LONGEST: number = 366 * 86_400_000

/** Letters, numbers, signs, and spaces between them: no character that breaks a line, or reverses the direction of the text beside it. */
const LABEL = /^(?! )[\p{L}\p{M}\p{N}\p{P}\p{S} ]+(?<! )$/u
const LONGEST_LABEL = 64

/** The fault of a label, as the end of a sentence; undefined for a valid label. */
export function problemOfLabel(label: string): string | undefined {
  if (LABEL.test(label) && [...label].length <= LONGEST_LABEL) return undefined
  return `must have 1 to ${LONGEST_LABEL} printable characters, such as probe or "Prometheus 2"; no space at an end`
}

export const MALFORMED_HANDOUT: AdminResponse = json(400, {
  error: 'say what to issue: {"lifetime": MS}, perhaps with "name" and "label"',
})

/** Parses the body of an `issue` command; undefined if it is no valid `Handout`. */
export function readHandout(text: string): Handout | undefined {
  const value = parse(text)
  if (value === null || typeof value !== 'object') return undefined
  const { name = '', label = '', lifetime, ...others }: Partial<Record<string, unknown>> = { ...value }
  if (Object.keys(others).length > 0 || typeof name !== 'string' || typeof label !== 'string')
    return undefined
  if (label !== '' && problemOfLabel(label) !== undefined) return undefined
  if (typeof lifetime !== 'number' || !Number.isSafeInteger(lifetime)) return undefined
  return lifetime >= SHORTEST && lifetime <= LONGEST ? { name, label, lifetime } : undefined
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The response to an `issue` command. 422: the configuration does not have the name. 409: the sidecar refuses to issue. */
export function responseToHandout({ name }: Handout, result: Awaited<ReturnType<HandOut>>): AdminResponse {
  switch (result) {
    case 'unknown-name':
      return json(422, { error: name === '' ? NAMELESS : UNKNOWN })
    case 'no-password':
      return json(409, { error: `${name || 'the account'} has no password now, so its tokens have ended` })
    case 'unfollowed':
      return json(409, { error: UNFOLLOWED })
    case 'unavailable':
      return STORE_SILENT
    default:
      return 'accessToken' in result ? json(200, result) : json(409, { error: fullText(result) })
  }
}

const NAMELESS = '--name: say whose token it is: the name of an entry of passwords'
const UNKNOWN = '--name: no entry of passwords has this name; with password there are no names'
const UNFOLLOWED =
  'nothing would end the token when the password changes: with password.device that is noticed only at a login, and the hook of password.socket gives no fingerprint; use password.file, htpasswd or shadow, or a hook with a fingerprint'

function fullText({ longestUnused }: { readonly longestUnused: GrantSummary | undefined }): string {
  const all = 'as many tokens as may be valid at once are issued'
  if (longestUnused === undefined) return all
  const { id, label = '', usedAt } = longestUnused
  const called = label === '' ? id : `${id} (${label})`
  const used =
    usedAt === null
      ? 'was not used since this sidecar started'
      : `was used last at ${new Date(usedAt).toISOString()}`
  return `${all}; ${called} ${used}: postern revoke --grant ${id} makes room`
}
