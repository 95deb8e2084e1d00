import { timingSafeEqual } from 'node:crypto'
import { type Incoming, json, oauthError, onlyValue, type Reply, uncached } from './exchange.ts'
import { ACCESS_LIFETIME, type Issued, type Tokens } from './tokens.ts'

/** The parameters of a form, each sent once. Undefined: the form is malformed or repeats a parameter. */
type Form = ReadonlyMap<string, string> | undefined

/** Strict where `URLSearchParams` is lenient: percent-encoding, UTF-8, repeats. An empty value counts as missing. */
export function parseForm(text: string): Form {
  const form = new Map<string, string>()
  const seen = new Set<string>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const [name = '', ...rest] = pair.split('=')
    try {
      const key = decode(name)
      if (seen.has(key)) return undefined
      seen.add(key)
      const value = decode(rest.join('='))
      if (value !== '') form.set(key, value)
    } catch {
      return undefined
    }
  }
  return form
}

/** Throws a `URIError` for what is no percent-encoded UTF-8. */
function decode(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}

async function readForm(request: Incoming): Promise<Form> {
  const type = onlyValue(request, 'content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) return undefined
  const text = await request.body()
  return text === undefined ? undefined : parseForm(text)
}

/** `POST /oauth/token` (device API §4.1 and §4.2; RFC 6749 §4.3, §5 and §6). */
export async function answerTokenRequest(
  request: Incoming,
  tokens: Tokens,
  password: string,
): Promise<Reply> {
  if (request.method !== 'POST')
    return oauthError('invalid_request', 'The token endpoint takes POST only.', { Allow: 'POST' })
  const form = await readForm(request)
  if (form === undefined) return oauthError('invalid_request', 'The body is not one well-formed form.')
  const grantType = form.get('grant_type')
  if (grantType === 'password') {
    const shown = form.get('password')
    if (shown === undefined) return oauthError('invalid_request', 'The password is missing.')
    if (!equal(shown, password)) return oauthError('invalid_grant', 'The password is wrong.')
    return tokenResponse(tokens.login())
  }
  if (grantType === 'refresh_token') {
    const shown = form.get('refresh_token')
    if (shown === undefined) return oauthError('invalid_request', 'The refresh token is missing.')
    const issued = tokens.refresh(shown)
    return issued === undefined
      ? oauthError('invalid_grant', 'The refresh token is not valid.')
      : tokenResponse(issued)
  }
  return grantType === undefined
    ? oauthError('invalid_request', 'The grant type is missing.')
    : oauthError('unsupported_grant_type', 'The grant type is neither password nor refresh_token.')
}

/** A token response object (device API §2). */
export function tokenResponse({ accessToken, refreshToken }: Issued): Reply {
  return uncached(200, {
    expires_in: ACCESS_LIFETIME,
    token_type: 'Bearer',
    refresh_token: refreshToken,
    access_token: accessToken,
  })
}

/** Token revocation (RFC 7009): 200 for every token, also for an unknown one. */
export async function answerRevocation(request: Incoming, tokens: Tokens): Promise<Reply> {
  const token = request.method === 'POST' ? (await readForm(request))?.get('token') : undefined
  if (token === undefined) return oauthError('invalid_request', 'The form has no token.')
  tokens.revoke(token)
  return uncached(200, {})
}

function equal(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Undefined if the request may pass; otherwise 401 with a challenge (RFC 6750 §3). The scheme is case-insensitive (RFC 9110 §11.1). */
export function refuseBearer(request: Incoming, tokens: Tokens): Reply | undefined {
  if (!request.fields.has('authorization'))
    return json(401, { error: 'missing_token' }, { 'WWW-Authenticate': 'Bearer realm="device"' })
  const [, token = ''] = /^bearer +([\w.~+/-]+=*)$/i.exec(onlyValue(request, 'authorization') ?? '') ?? []
  if (tokens.admits(token)) return undefined
  const challenge = 'Bearer realm="device", error="invalid_token"'
  return json(401, { error: 'invalid_token' }, { 'WWW-Authenticate': challenge })
}
