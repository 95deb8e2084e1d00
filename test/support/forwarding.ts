/** `upstream.headers` by which the device gets none of Postern's fields about the client and the proxy. */
export const NO_FORWARDING = { 'X-Forwarded-*': null, Via: null, 'X-Request-Id': null } as const

/** With these it gets `X-Forwarded-For` and `X-Request-Id` alone. */
export const LITTLE_FORWARDING = {
  'X-Forwarded-Proto': null,
  'X-Forwarded-Host': null,
  'X-Forwarded-Port': null,
  Via: null,
} as const
