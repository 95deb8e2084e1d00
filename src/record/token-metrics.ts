import { type MetricRegistry, seriesOf } from './metric-registry.ts'

/** The sources of the gauges, read on each scrape. */
export interface TokenCounts {
  /** Live tokens of logins. */
  readonly tokens: () => { readonly access: number; readonly refresh: number }
  /** Live tokens that an operator issued. */
  readonly issued: () => number
  /** When the first issued token ends that has to be replaced (ms since the Unix epoch); undefined without one: see `unreplaced`. */
  readonly issuedEnds: () => number | undefined
  /** Live tokens that are not in the token file and that a restart would lose; undefined for `tokens.store: memory`. */
  readonly unsaved: () => number | undefined
  /** Addresses with wrong passwords in the last minutes. */
  readonly guessing: () => number
}

/** The metrics of logins and tokens. */
export function createTokenMetrics(
  { counter, readGauge, readGauges }: MetricRegistry,
  counts: () => TokenCounts | undefined,
) {
  const passwordFailures = counter('password_failures_total', 'Password grants with a wrong password.')()
  const slowedLogins = counter(
    'logins_slowed_total',
    'Logins that waited because of wrong passwords before them.',
  )()
  readGauge(
    'guessing_addresses',
    'Addresses with wrong passwords within the last five to ten minutes. An IPv6 /48 is one.',
    () => counts()?.guessing() ?? 0,
  )
  readGauges('tokens', 'Live tokens.', 'kind', () => {
    const { access, refresh } = counts()?.tokens() ?? { access: 0, refresh: 0 }
    return { access, refresh }
  })
  readGauge(
    'issued_tokens',
    'Live tokens of postern issue, which are not among postern_tokens.',
    () => counts()?.issued() ?? 0,
  )
  readGauge(
    'issued_token_expiry_timestamp_seconds',
    'When the first token of postern issue ends that was issued for more than two weeks and has no successor.',
    () => {
      const endsAt = counts()?.issuedEnds()
      return endsAt === undefined ? undefined : endsAt / 1000
    },
  )
  readGauge(
    'tokens_unsaved',
    'Live tokens that are missing in the token file because writing it failed. A restart would lose them.',
    () => counts()?.unsaved(),
  )
  const issued = counter('tokens_issued_total', 'Token responses, by grant type.', ['grant'])
  const revoked = counter('tokens_revoked_total', 'Grants revoked with all tokens, by reason.', ['reason'])
  const evicted = seriesOf(
    counter('tokens_evicted_total', 'Tokens dropped because the store was full.', ['kind']),
    ['access', 'refresh'],
  )

  return {
    passwordFailed: (): void => passwordFailures.add(),
    loginSlowed: (): void => slowedLogins.add(),
    /** @param responses 0 creates the series of a grant type before its first use */
    tokensIssued: (grant: string, responses = 1): void => issued(grant).add(responses),
    tokensRevoked: (reason: string, grants: number): void => revoked(reason).add(grants),
    tokensEvicted: (kind: 'access' | 'refresh', count: number): void => evicted[kind].add(count),
  }
}
