import type { Promised } from '../promised.ts'

/** What every client can rely on. "Device API" is the documented API of the devices, which Postern implements. */
export const CONTRACT = {
  C1: {
    sentence:
      'Postern answers the path `/oauth/token` itself, with any query, and the device never sees it. Any other spelling of the path needs a bearer token like every path.',
    reason: 'device API; decision: one exact path, so that no normalisation can disagree',
    check: 'posts the password, without a bearer token, to four other spellings of the path',
  },
  C2: {
    sentence:
      'The token endpoint reads one form in UTF-8. Another content type, bad encoding, a repeated parameter or a missing or empty required one is 400 `invalid_request`; unknown parameters are ignored.',
    reason: 'RFC 6749 §3.2, §4.3.2 and appendix B',
    check:
      'sends a login without `grant_type`, without the password, with an empty password, with either of the two twice, and as JSON; and a wrong password in the query of a GET, which has to be refused like a GET without a query',
  },
  C3: {
    sentence:
      'The password grant needs `grant_type=password` and `password`. Username, client credentials and scope are accepted and ignored. With `passwords`, a username that is a configured name is held against the password of that name only: H308.',
    reason: 'device API; decision: ordinary OAuth libraries always send some of them',
    check: 'logs in once with all of them, the client credentials also as Basic authorization',
  },
  C4: {
    sentence:
      'A token response is 200 with exactly `expires_in`, `token_type`, `refresh_token` and `access_token`, and is not to be cached. A token holds 256 random bits in base64url.',
    reason: 'device API; RFC 6749 §5.1 and §10.10',
    check: 'logs in twice, reads the responses, compares the tokens, and uses the first access token',
  },
  C5: {
    sentence:
      'A wrong password, and a refresh token that is unknown, expired, revoked or of the wrong kind, is 400 `invalid_grant`. Another grant type is 400 `unsupported_grant_type`.',
    reason: 'RFC 6749 §5.2',
    check: 'sends one of each, that of a revoked token only if the server offers revocation',
  },
  C6: {
    sentence:
      'A refresh gives a new access token; earlier ones stay valid. The refresh token stays the same and keeps its expiry, unless `tokens.rotate_refresh` replaces it; then reuse after the grace revokes the grant.',
    reason: 'device API; RFC 9700 §4.14.2 for rotation',
    check:
      'refreshes one login twice and uses its access tokens; if the refresh token is replaced, it refreshes the other login and shows the spent token again: at once, and, without `--quick`, 12 s later, followed by its successor',
  },
  C7: {
    sentence:
      'Access tokens live 3600 s and refresh tokens 604,800 s by default. A token is invalid from its expiry second on. A jump of the wall clock changes nothing.',
    reason: 'device API',
    check:
      'reads `expires_in` of a login and of a refresh, and, without `--quick`, uses the first access token again: after a window, if the run waits for one',
  },
  C8: {
    sentence:
      'When the device password changes, all tokens are invalid at once and the tunnels and streams opened with them are closed, also when the change came while Postern was stopped. With `passwords`, those of its name (H194).',
    reason: 'device API',
    check: 'cannot check this: it would have to change the password of the device',
  },
  C9: {
    sentence:
      'A token request is at most 8 KiB and meets the header and body deadlines. No body, password or token reaches a log, a metric, an error message or the device.',
    reason: 'decision: bounded work before authentication; CWE-532 for secrets in logs',
    check:
      'looks for the wrong password and for the tokens, right and wrong, in the responses that refuse them',
  },
  C10: {
    sentence:
      'Every path but the token endpoint needs one well-formed `Authorization: Bearer` field with a live access token. Anything else is 401. With `browser.login`, the session of a browser stands for a token (H188).',
    reason: 'device API; RFC 6750 §2.1; RFC 9110 §11.4',
    check:
      'asks without a token by GET, HEAD and OPTIONS, with eleven wrong credentials, and with a valid token in the query and in a cookie; in return, two other spellings of the right credential have to be admitted',
  },
  C11: {
    sentence:
      'A 401 carries `WWW-Authenticate: Bearer` with the configured realm, and `error="invalid_token"` only when the client showed a token.',
    reason: 'RFC 6750 §3 and §3.1',
    check: 'reads the challenge of each 401 that C10 causes',
  },
  C12: {
    sentence:
      'Not a byte of a refused request reaches the device. The refusal reaches the client although it is still sending its body.',
    reason: 'decision: the gate stands in front of all forwarding; RFC 9112 §9.6 for the lingering close',
  },
  C13: {
    sentence:
      'Two windows count requests: 30 in 60 s for the token endpoint, 60 in 60 s for everything else. Every request of a client that may connect counts, also a refused one, but for a stream that is refused unread (`REFUSED_STREAM`).',
    reason: 'device API',
    check:
      'uses up both windows over one connection with requests of every outcome, and sends requests to the API between two to `/oauth/token`; with `--quick` it uses up what is left of them',
  },
  C14: {
    sentence:
      'A window is fixed: it opens with the first request of a key and closes after its length. Exactly the configured number passes, under any concurrency.',
    reason: 'device API: the window "resets" at one time that the headers state',
    check:
      'uses up new windows over one connection, with half a window between the first requests and the others, over many connections, and over HTTP/2; it asks shortly before the reset, and at the reset',
  },
  C15: {
    sentence:
      'Past the limit a request is 429 with `Retry-After`, before its token is checked and before its body is read. Refused requests do not prolong the window.',
    reason: 'device API; RFC 6585 §4',
    check:
      'asks past both limits, with and without a token, compares `Retry-After` with the reset, and, without `--quick`, asks again when it is over',
  },
  C16: {
    sentence:
      'Every response to a request carries `X-RateLimit-Limit`, `-Remaining` and `-Reset`. The device cannot set or duplicate them. An HTTP/2 stream that is refused unread has no response.',
    reason: 'device API; draft-ietf-httpapi-ratelimit-headers for the optional two',
    check:
      'reads the fields of every response, apart from those of the floods and to malformed requests, and compares them within the windows that it uses up',
  },
  C17: {
    sentence:
      'A window belongs to a client address (IPv6 by /64), a grant, a name of `passwords` or the device, as `per` says. Forwarded addresses count only from trusted proxies, and a full table evicts no live window.',
    reason: 'attack: address spraying and spoofed `X-Forwarded-For`',
  },
  C18: {
    sentence:
      'Every response of Postern itself is a JSON object with an `error` code of a fixed list and an `error_description`. It tells nothing of the inside. The navigation of a browser gets the same response as a page (H187, H315). Preflights have no body (H191).',
    reason: 'RFC 6749 §5.2 for the form; device API leaves the body open',
  },
  C19: {
    sentence:
      'By default Postern itself uses only the statuses 200, 400, 401, 429 and 500; `status_codes: http` uses the precise ones. `Proxy-Status` names the reason of a device failure.',
    reason: 'device API; RFC 9209',
    check: 'reads the status of each refusal, and sends GET to `/oauth/token`',
  },
  C20: {
    sentence:
      'Bytes that are not HTTP get 400 and a closed connection. Empty lines around a request are skipped, a half-closed client gets its response, and no message ends the process.',
    reason: 'RFC 9112 §2.2 and §9.6',
  },
  C21: {
    sentence:
      'Method, path, query and bodies pass byte for byte, in order, streamed with back-pressure at constant memory. Status, header order, casing and repeats are kept; H173 has the casing of HTTP/2.',
    reason: 'RFC 9110 §7.7; decision: the device keeps its API',
  },
  C22: {
    sentence:
      'Hop-by-hop fields, the bearer token and forwarding claims of untrusted peers stop at Postern. It adds its own forwarding fields, `Via` and `X-Request-Id`.',
    reason: 'RFC 9110 §7.6.1 and §7.6.3; RFC 7239 §8',
  },
  C23: {
    sentence:
      'Clients speak HTTP/1.1 or HTTP/2, chosen by ALPN, and WebSocket through the same gate. Other upgrade offers are ignored, events are not buffered, and a 100 comes after admission.',
    reason: 'RFC 9110 §7.8, §10.1.1 and §15.2; RFC 9113; RFC 6455',
  },
  C24: {
    sentence:
      'A transfer that breaks at the device is visibly broken at the client. A client that leaves aborts its request at the device, and only a repeatable request is sent again: once after a reused connection, and once after a new one that the device dropped without a byte, if it worked within the last second.',
    reason: 'RFC 9112 §8 and §9.3.1; RFC 9110 §9.2.2',
  },
  C25: {
    sentence:
      'At most `upstream.max_in_flight` requests are at the device. A bounded queue waits behind them; past that a request is `overloaded` with `Retry-After`.',
    reason: 'decision: a slow device is never buried under its clients',
  },
  C26: {
    sentence:
      'What clients make Postern hold is bounded in bytes, over all of them and by client. Whoever holds most loses first; a client that holds little is served, and its request at the device is not shed. Addresses that guess passwords, however many, do not keep those out who have logged in before.',
    reason: 'decision: no flood, with a token or without, takes the service from others, logging in included',
  },
} as const satisfies Readonly<Record<`C${number}`, Promised>>
