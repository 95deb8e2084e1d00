import type { Client, Identity, Presented } from '../http/admission.ts'
import type { RequestHead } from '../http/exchange.ts'
import type { Tokens } from '../tokens/token-contract.ts'

/** Upper bound on a presented token (bytes): longer than any minted one, and it caps the cost of hashing garbage. */
const LONGEST_TOKEN = 512

/**
 * RFC 6750 §2.1, with the scheme in any letter case and one or more spaces (RFC 9110 §11.4). There are no blanks around the
 * value: the HTTP/1 reader strips them, and HTTP/2 forbids them (RFC 9113 §8.2.1).
 */
const BEARER = /^bearer +[A-Za-z0-9\-._~+/]+=*$/i

const BEARER_SCHEME_ONLY = /^bearer *$/i
const BEARER_SCHEME = /^bearer[\t ,]/i

/**
 * Reads the token from the `Authorization` fields. `missing`: the request shows no bearer token, because it has no field, another
 * scheme, or the scheme alone. The challenge then carries no error code (RFC 6750 §3.1).
 */
export function readBearer(fields: readonly string[]): Presented {
  const value = fields[0]
  if (value === undefined) return { kind: 'none', cause: 'missing' }
  if (fields.length > 1) return { kind: 'none', cause: 'malformed' }
  if (BEARER.test(value)) {
    const token = value.slice(value.lastIndexOf(' ') + 1)
    return token.length > LONGEST_TOKEN ? { kind: 'none', cause: 'malformed' } : { kind: 'token', token }
  }
  const shown = BEARER_SCHEME.test(value) && !BEARER_SCHEME_ONLY.test(value)
  return { kind: 'none', cause: shown ? 'malformed' : 'missing' }
}

/** The grant of the token in the `Authorization` fields; a promise if the token store returns one. */
export function identifyBearer(
  head: RequestHead,
  client: Pick<Client, 'key'>,
  identify: Tokens['identify'],
): Identity | Promise<Identity> {
  head.presented ??= readBearer(head.survey.authorization)
  const { presented } = head
  return presented.kind === 'token'
    ? identify(presented.token, client.key)
    : { kind: 'refused', cause: presented.cause }
}
