import { type Incoming, json, type Reply } from './exchange.ts'
import type { Tokens } from './tokens.ts'

/** What a request shows as its credential. */
type Credential =
  | { readonly kind: 'none' }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'token'; readonly token: string }

/** Reads the one `Authorization: Bearer` field (RFC 6750 §2.1). The scheme is case-insensitive (RFC 9110 §11.1). */
export function credentialOf({ fields }: Incoming): Credential {
  const values = fields.get('authorization') ?? []
  if (values.length === 0) return { kind: 'none' }
  const token = values.length === 1 ? /^bearer +([\w.~+/-]+=*)$/i.exec(values[0] ?? '')?.[1] : undefined
  return token === undefined ? { kind: 'malformed' } : { kind: 'token', token }
}

/** Undefined if the request may pass; otherwise 401 with a challenge (RFC 6750 §3). */
export function refuseBearer(request: Incoming, tokens: Tokens): Reply | undefined {
  const credential = credentialOf(request)
  if (credential.kind === 'none')
    return json(401, { error: 'missing_token' }, { 'WWW-Authenticate': 'Bearer realm="device"' })
  if (credential.kind === 'token' && tokens.admits(credential.token)) return undefined
  const challenge = 'Bearer realm="device", error="invalid_token"'
  return json(401, { error: 'invalid_token' }, { 'WWW-Authenticate': challenge })
}
