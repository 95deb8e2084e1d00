/**
 * A promise that `postern verify` reports for any server with the documented API. Postern's other promises are its own, or no client can
 * see them.
 */
interface SeenFromOutside {
  /** Exactly what a check establishes. */
  readonly sentence: string
  /** The clauses of the documented API or of an RFC that demand it. */
  readonly clause: string
  /** True if a client could see it, but no run may cause it. */
  readonly untestable?: true
}

export const PROMISES = {
  C1: {
    sentence: 'Only `/oauth/token` gives tokens; other spellings of the path do not.',
    clause: 'device API §4.1 and §4.3',
  },
  C2: {
    sentence:
      'A login without a parameter, with an empty or repeated one, or as JSON gets 400 `invalid_request`. A form in the query of a GET is no login.',
    clause: 'RFC 6749 §2.3.1, §3.2, §4.3.2 and §5.2; device API §4.1 and §7',
  },
  C3: {
    sentence:
      'A login may carry a username, client credentials, a scope and an unknown parameter: it gives tokens all the same.',
    clause: 'device API §4.1; RFC 6749 §3.2',
  },
  C4: {
    sentence:
      'A login gives 200 with an access token, a refresh token, `token_type` Bearer and `expires_in` in seconds, and is not to be cached. No two tokens are equal, and the API admits the access token.',
    clause: 'device API §2, §4.1 and §5.3; RFC 6749 §5.1 and §10.10; RFC 6750 §2.1',
  },
  C5: {
    sentence:
      'A wrong password, an unknown refresh token, or an access token in its place gets 400 `invalid_grant`; so does a refresh token whose revocation was answered with 200. An unknown grant type gets 400 `unsupported_grant_type`.',
    clause: 'RFC 6749 §5.2; RFC 7009 §2.2; device API §7',
  },
  C6: {
    sentence:
      'A refresh gives a new access token, and the earlier ones stay valid. If it also replaces the refresh token, the spent one gives no second login: its reuse is refused, and revokes the login.',
    clause: 'device API §4.2 and §5.6; RFC 6749 §6; RFC 9700 §4.14.2',
  },
  C7: {
    sentence:
      'Logins and refreshes state a lifetime of 3600 s, and the first access token is valid when it is used again.',
    clause: 'device API §2 and §5.6',
  },
  C8: {
    sentence: 'A change of the device password makes all tokens invalid.',
    clause: 'device API §5.7',
    untestable: true,
  },
  C9: { sentence: 'No refusal shows the password or the token that its request carried.', clause: 'CWE-209' },
  C10: {
    sentence: 'A request to the API without one valid access token as `Authorization: Bearer` gets 401.',
    clause: 'device API §4.3, §5.3 and §5.4; RFC 6750 §2.1; RFC 9110 §11.1 and §11.4',
  },
  C11: {
    sentence: 'A 401 of the API carries `WWW-Authenticate` with the scheme Bearer.',
    clause: 'RFC 6750 §3; RFC 9110 §15.5.2',
  },
  C13: {
    sentence:
      'The API and `/oauth/token` have a window each, in which every request counts once, also a refused one.',
    clause: 'device API §8',
  },
  C14: {
    sentence:
      'Exactly the limit passes in a window, whatever the number of connections. The window stays closed until its reset, at which all of it is new.',
    clause: 'device API §8',
  },
  C15: {
    sentence:
      'Past the limit a request gets 429 with a `Retry-After` that ends at the reset, and a refused request does not prolong the window.',
    clause: 'device API §7 and §8; RFC 6585 §4; RFC 9110 §10.2.3',
  },
  C16: {
    sentence:
      'Every response carries `X-RateLimit-Limit`, `-Remaining` and `-Reset`, once each, with the values of its window.',
    clause: 'device API §8',
  },
  C19: { sentence: 'A refusal has one of the statuses 400, 401, 429 and 500.', clause: 'device API §7' },
  H20: { sentence: 'A request without Host, or with two of them, is refused.', clause: 'RFC 9112 §3.2' },
  H24: {
    sentence: 'No other spelling of a path gets past the check of the token.',
    clause: 'device API §4.3 and §5.4',
  },
  H69: {
    sentence:
      'A client gets no second window by a spoofed address, another spelling of the path or a refreshed token.',
    clause: 'device API §8',
  },
  H125: {
    sentence:
      'Under a flood exactly the limit passes, every other request gets its 429, and a client within its limit is served beside it.',
    clause: 'device API §7 and §8',
  },
} as const satisfies Readonly<Record<string, SeenFromOutside>>

/** A promise that `postern verify` reports, by its id. */
export type OutsideId = keyof typeof PROMISES

/** Every promise that `postern verify` reports. `test/promises` describes how a run checks each. */
export const OUTSIDE: ReadonlyMap<OutsideId, SeenFromOutside> = new Map(
  // Proof of the cast: an object literal has exactly the keys of its type.
  Object.entries(PROMISES) as [OutsideId, SeenFromOutside][],
)
