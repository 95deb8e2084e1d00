import type { RequestHead } from '../http/exchange.ts'
import { type Fields, fieldValues } from '../http/fields.ts'
import type { OwnEndpointHandler } from '../oauth/token-endpoint.ts'

/** The origins whose pages may use the API, as browsers write them. */
export type Origins = ReadonlySet<string>

/** The fields of the device that are removed, in lower case: the gate writes its own. */
export const CORS_FIELD_NAMES: readonly string[] = [
  'allow-origin',
  'allow-credentials',
  'expose-headers',
  'allow-methods',
  'allow-headers',
  'allow-private-network',
  'max-age',
].map((name) => `access-control-${name}`)

const ELSEWHERE: Fields = ['Vary', 'Origin']

function originOf({ fields }: RequestHead, origins: Origins): string | undefined {
  const [origin, second] = fieldValues(fields, 'origin')
  return origin !== undefined && second === undefined && origins.has(origin) ? origin : undefined
}

/**
 * The fields of every response (Fetch §3.3.3). A page of a listed origin may read all fields of a response.
 * `Access-Control-Allow-Credentials` is never sent: without it, the page cannot read a response to a request with a cookie.
 */
export function corsFields(head: RequestHead, origins: Origins): Fields {
  const origin = originOf(head, origins)
  if (origin === undefined) return ELSEWHERE
  return [...ELSEWHERE, 'Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', '*']
}

const ASKED_METHOD = 'access-control-request-method'

/** Whether a request is a browser's question whether a page of a listed origin may send a request. */
export function isPreflight(head: RequestHead, origins: Origins): boolean {
  if (head.method !== 'OPTIONS' || originOf(head, origins) === undefined) return false
  return fieldValues(head.fields, ASKED_METHOD).length === 1
}

/** How long a browser remembers the response (s). */
const MAX_AGE = '600'

/**
 * Answers a preflight, which carries no token. Every method and field that it asks for is allowed, because the request itself needs a
 * token.
 */
export function createPreflight(settings: {
  readonly config: { readonly statusCodes: 'contract' | 'http' }
}): OwnEndpointHandler {
  return async ({ head: { fields } }) => {
    const [method = ''] = fieldValues(fields, ASKED_METHOD)
    const names = fieldValues(fields, 'access-control-request-headers').join(',')
    const allowed = ['Access-Control-Allow-Methods', method, 'Access-Control-Max-Age', MAX_AGE]
    if (names !== '') allowed.push('Access-Control-Allow-Headers', names)
    const status = settings.config.statusCodes === 'http' ? 204 : 200
    return { response: { status, fields: allowed, body: '' } }
  }
}
