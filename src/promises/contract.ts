/** What Postern promises under one id, and the reason for the promise. */
export interface Promised {
  readonly sentence: string
  /** A clause of an RFC, the documented API of the devices ("device API"), a decision of this project, an attack or a CVE. */
  readonly reason: string
  /** What `postern verify` does to check it from outside. Absent if a client cannot see whether the promise is kept. */
  readonly outside?: string
}

/** What every client can rely on. "Device API" is the documented API of the devices, which Postern implements. */
export const CONTRACT = {
  C1: {
    sentence:
      'Postern answers the path `/oauth/token` itself, with any query, and the device never sees it. Any other spelling of the path needs a bearer token like every path.',
    reason: 'device API; decision: one exact path, so that no normalisation can disagree',
    outside:
      'posts the password to three other spellings of the path, without a bearer token: none of them gives tokens',
  },
  C2: {
    sentence:
      'The token endpoint reads one form in UTF-8. Another content type, bad encoding, a repeated parameter or a missing or empty required one is 400 `invalid_request`; unknown parameters are ignored.',
    reason: 'RFC 6749 §3.2, §4.3.2 and appendix B',
    outside:
      'sends forms without a parameter, with an empty one, with one twice, and of another content type',
  },
  C3: {
    sentence:
      'The password grant needs `grant_type=password` and `password`. Username, client credentials and scope are accepted and ignored.',
    reason: 'device API; decision: ordinary OAuth libraries always send some of them',
    outside: 'logs in with a username, client credentials, a scope and an unknown parameter',
  },
  C4: {
    sentence:
      'A token response is 200 with exactly `expires_in`, `token_type`, `refresh_token` and `access_token`, and is not to be cached. A token holds 256 random bits in base64url.',
    reason: 'device API; RFC 6749 §5.1 and §10.10',
    outside: 'logs in twice and reads the responses; the tokens differ, and the access token is admitted',
  },
  C5: {
    sentence:
      'A wrong password, and a refresh token that is unknown, expired, revoked or of the wrong kind, is 400 `invalid_grant`. Another grant type is 400 `unsupported_grant_type`.',
    reason: 'RFC 6749 §5.2',
    outside:
      'sends a wrong password, an unknown refresh token, an access token as one, and another grant type',
  },
  C6: {
    sentence:
      'A refresh gives a new access token; earlier ones stay valid. The refresh token stays the same and keeps its expiry, unless `tokens.rotate_refresh` replaces it; then reuse after the grace revokes the grant.',
    reason: 'device API; RFC 9700 §4.14.2 for rotation',
    outside:
      'refreshes twice, and uses every token that it has got by then; if the refresh token rotates, it shows a spent one again',
  },
  C7: {
    sentence:
      'Access tokens live 3600 s and refresh tokens 604,800 s by default. A token is invalid from its expiry second on. A jump of the wall clock changes nothing.',
    reason: 'device API',
    outside: 'reads `expires_in`, and uses the first access token again a window later',
  },
  C8: {
    sentence:
      'When the device password changes, all tokens are invalid at once and the tunnels and streams opened with them are closed, also when the change came while Postern was stopped.',
    reason: 'device API',
    outside: 'nothing: it would have to change the password of the device',
  },
  C9: {
    sentence:
      'A token request is at most 8 KiB and meets the header and body deadlines. No body, password or token reaches a log, a metric, an error message or the device.',
    reason: 'decision: bounded work before authentication; CWE-532 for secrets in logs',
    outside: 'looks for the password and the tokens in every response that refuses something',
  },
  C10: {
    sentence:
      'Every path but the token endpoint needs one well-formed `Authorization: Bearer` field with a live access token. Anything else is 401.',
    reason: 'device API; RFC 6750 §2.1; RFC 9110 §11.4',
    outside:
      'asks without a token and with eleven kinds of wrong ones, by HEAD and OPTIONS, and with a token in the query',
  },
  C11: {
    sentence:
      'A 401 carries `WWW-Authenticate: Bearer` with the configured realm, and `error="invalid_token"` only when the client showed a token.',
    reason: 'RFC 6750 §3 and §3.1',
    outside: 'reads the challenge of each 401 that C10 causes',
  },
  C12: {
    sentence:
      'Not a byte of a refused request reaches the device. The refusal reaches the client although it is still sending its body.',
    reason: 'decision: the gate stands in front of all forwarding; RFC 9112 §9.6 for the lingering close',
  },
  C13: {
    sentence:
      'Two windows count requests: 30 in 60 s for the token endpoint, 60 in 60 s for everything else. Every request counts, also a refused one.',
    reason: 'device API',
    outside:
      'uses up both windows over one connection, with requests of every outcome: each counts once, in one of them',
  },
  C14: {
    sentence:
      'A window is fixed: it opens with the first request of a key and closes after its length. Exactly the configured number passes, under any concurrency.',
    reason: 'device API: the window "resets" at one time that the headers state',
    outside:
      'uses up new windows over one connection, over many, and over HTTP/2: exactly the limit passes, until the reset',
  },
  C15: {
    sentence:
      'Past the limit a request is 429 with `Retry-After`, before its token is checked and before its body is read. Refused requests do not prolong the window.',
    reason: 'device API; RFC 6585 §4',
    outside:
      'asks past the limit, with and without a token; before `Retry-After` is over nothing passes, and after it a request does',
  },
  C16: {
    sentence:
      'Every response to a request carries `X-RateLimit-Limit`, `-Remaining` and `-Reset`. The device cannot set or duplicate them.',
    reason: 'device API; draft-ietf-httpapi-ratelimit-headers for the optional two',
    outside: 'reads the three fields of every response of the run, and compares them within each window',
  },
  C17: {
    sentence:
      'A window belongs to a client address (IPv6 by /64), a grant or the device, as `per` says. Forwarded addresses count only from trusted proxies, and a full table evicts no live window.',
    reason: 'attack: address spraying and spoofed `X-Forwarded-For`',
  },
  C18: {
    sentence:
      'Every response of Postern itself is a JSON object with an `error` code of a fixed list and an `error_description`. It tells nothing of the inside.',
    reason: 'RFC 6749 §5.2 for the form; device API leaves the body open',
  },
  C19: {
    sentence:
      'By default Postern itself uses only the statuses 200, 400, 401, 429 and 500; `status_codes: http` uses the precise ones. `Proxy-Status` names the reason of a device failure.',
    reason: 'device API; RFC 9209',
    outside: 'reads the statuses of all refusals, and sends GET to the token endpoint',
  },
  C20: {
    sentence:
      'Bytes that are not HTTP get 400 and a closed connection. Empty lines around a request are skipped, a half-closed client gets its response, and no message ends the process.',
    reason: 'RFC 9112 §2.2 and §9.6',
  },
  C21: {
    sentence:
      'Method, path, query and bodies pass byte for byte, in order, streamed with back-pressure at constant memory. Status, header order, casing and repeats are kept.',
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
      'A transfer that breaks at the device is visibly broken at the client. A client that leaves aborts its request at the device, and only a repeatable request is sent again, once.',
    reason: 'RFC 9112 §8 and §9.3.1; RFC 9110 §9.2.2',
  },
  C25: {
    sentence:
      'At most `upstream.max_in_flight` requests are at the device. A bounded queue waits behind them; past that a request is `overloaded` with `Retry-After`.',
    reason: 'decision: a slow device is never buried under its clients',
  },
} as const satisfies Readonly<Record<`C${number}`, Promised>>
