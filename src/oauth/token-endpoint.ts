import type { TokenRequest } from '../http/admission.ts'
import type { Exchange, Reply } from '../http/exchange.ts'
import { fieldValues } from '../http/fields.ts'
import { JSON_TYPE } from '../http/media-type.ts'
import type { Refusal } from '../http/refusal.ts'
import { isFormType, parseForm } from './form.ts'
import type { Grant, GrantedTokens, GrantResult } from './grant.ts'
import { refuse } from './grant.ts'
import { readTokenBody } from './token-body.ts'

export interface TokenEndpointDependencies {
  /** The grant types that are served, by the value of `grant_type`. */
  readonly grants: ReadonlyMap<string, Grant>
  /** Milliseconds within which the request body must be there. */
  readonly bodyTimeout: () => number
}

/** What the token endpoint answers; `close` ends the connection behind a refusal whose body was not read to its end. */
export type TokenAnswer =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly close: boolean }

export type TokenEndpoint = (request: TokenRequest, exchange: Exchange) => Promise<TokenAnswer>

/** `POST /oauth/token`, step by step: type, body, form, grant, answer. Each step may be the last. */
export function createTokenEndpoint({ grants, bodyTimeout }: TokenEndpointDependencies): TokenEndpoint {
  return async (request, exchange) => {
    const typeFault = mediaTypeFault(exchange)
    if (typeFault !== undefined) return { kind: 'refused', refusal: typeFault, close: false }

    const body = await readTokenBody(exchange, declaredLength(exchange), bodyTimeout())
    if (body.kind === 'refused') return body

    const result = await exchangeGrant(body.bytes, grants, request.client)
    return result.kind === 'granted'
      ? { kind: 'reply', reply: tokenReply(result.tokens) }
      : { kind: 'refused', refusal: result.refusal, close: false }
  }
}

function mediaTypeFault(exchange: Exchange): Refusal | undefined {
  const types = fieldValues(exchange.head.fields, 'content-type')
  const type = types[0]
  if (type === undefined || types.length > 1 || !isFormType(type)) return { kind: 'unsupported-media-type' }
  const coded = fieldValues(exchange.head.fields, 'content-encoding').some(
    (coding) => coding.toLowerCase() !== 'identity',
  )
  return coded
    ? { kind: 'invalid-request', description: 'The body must not have a Content-Encoding.' }
    : undefined
}

function declaredLength(exchange: Exchange): number | undefined {
  const length = fieldValues(exchange.head.fields, 'content-length')[0]
  return length === undefined ? undefined : Number(length)
}

async function exchangeGrant(
  body: Buffer,
  grants: ReadonlyMap<string, Grant>,
  client: string,
): Promise<GrantResult> {
  const form = parseForm(body)
  if (form.kind === 'invalid') return refuse({ kind: 'invalid-request', description: form.description })

  const grantType = form.parameters.get('grant_type')
  if (!grantType) return missing('grant_type')
  const grant = grants.get(grantType)
  if (grant === undefined) return refuse({ kind: 'unsupported-grant-type' })

  const value = form.parameters.get(grant.parameter)
  if (!value) return missing(grant.parameter)
  return grant.exchange(value, client)
}

function missing(parameter: string): GrantResult {
  return refuse({ kind: 'invalid-request', description: `The parameter ${parameter} is missing or empty.` })
}

/** Exactly the four fields of the document, never cached (C4, RFC 6749 §5.1). */
function tokenReply(tokens: GrantedTokens): Reply {
  const body = JSON.stringify({
    expires_in: tokens.expiresIn,
    token_type: 'Bearer',
    refresh_token: tokens.refreshToken,
    access_token: tokens.accessToken,
  })
  return {
    status: 200,
    fields: [
      'Content-Type',
      JSON_TYPE,
      'Content-Length',
      String(Buffer.byteLength(body)),
      'Cache-Control',
      'no-store',
      'Pragma',
      'no-cache',
    ],
    body,
  }
}
