/** An answer of the program itself. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export const JSON_TYPE = 'application/json;charset=UTF-8'

export function refusal(
  status: number,
  error: string,
  sentence: string,
  headers: Answer['headers'] = {},
): Answer {
  return {
    status,
    headers: { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store', ...headers },
    body: JSON.stringify({ error, error_description: sentence }),
  }
}

export const LIMITED: Answer = refusal(429, 'rate_limited', 'The rate limit is exceeded.')
export const MALFORMED: Answer = refusal(400, 'invalid_request', 'The request is not valid.')
export const WRONG_METHOD: Answer = refusal(400, 'invalid_request', 'The method must be POST.', {
  Allow: 'POST',
})
export const FAILED: Answer = refusal(500, 'server_error', 'The request failed.')

/** @param shown whether the request showed a token */
export function unauthorized(shown: boolean): Answer {
  const challenge = `Bearer realm="device"${shown ? ', error="invalid_token"' : ''}`
  return refusal(401, 'invalid_token', 'A valid access token is required.', { 'WWW-Authenticate': challenge })
}
