import { type Answer, textMember } from './answer.ts'
import type { Question } from './question.ts'

/** The logins of a run, by the token that revokes each. */
export interface Logins {
  /** Reads the response to a POST. */
  add(question: Question, answer: Answer): void
  /** The newest refresh token of each login, or its access token if it has no other. */
  readonly tokens: ReadonlySet<string>
}

export function createLogins(): Logins {
  const tokens = new Set<string>()
  return {
    tokens,
    add({ body = '' }, answer) {
      const access = textMember(answer, 'access_token')
      const refresh = textMember(answer, 'refresh_token')
      const shown = new URLSearchParams(body).get('refresh_token')
      // A refresh may leave the refresh token out when it stays the same (RFC 6749 §6).
      const isRefresh = shown !== null && tokens.has(shown)
      const token = refresh ?? (isRefresh ? undefined : access)
      if (token === undefined) return
      if (shown !== null) tokens.delete(shown)
      tokens.add(token)
    },
  }
}
